# One scenario of reference.csv in ns-2. Arguments, in order: see `names`. Prints for each flow, with times since its start:
#   FLOW t_ack t_rx segments_sent retransmissions timeouts window_cuts
set names {agent impatient bw delay access_bw access_delay limit payload segments iw window ssthresh delack limtran syn drops cbr starts epoch}
if {[llength $argv] != [llength $names]} { puts stderr "expected: $names"; exit 2 }
foreach name $names value $argv { set $name $value }

set ns [new Simulator]
$defaultRNG seed 1
foreach {option value} [list tcpTick_ 0.001 minrto_ 1.0 maxrto_ 60 rtxcur_init_ 3.0 rfc2988_ 1 singledup_ $limtran \
        timestamps_ 0 useHeaders_ 1 packetSize_ $payload windowInit_ $iw windowInitOption_ 1 window_ $window \
        syn_ $syn delay_growth_ $syn] {
    Agent/TCP set $option $value
}
Agent/TCP/Newreno set newreno_changes1_ $impatient
Agent/TCP/Newreno set partial_window_deflation_ 1
foreach class {Agent/TCPSink Agent/TCPSink/DelAck Agent/TCPSink/Sack1 Agent/TCPSink/Sack1/DelAck} {
    $class set packetSize_ 40
    $class set maxSackBlocks_ 3
    $class set SYN_immediate_ack_ 1
}

foreach node {h1 r1 r2 h2 c1 c2} { set $node [$ns node] }
Queue set limit_ 1000000
foreach {a b} [list $h1 $r1 $r2 $h2 $c1 $r1 $r2 $c2] { $ns duplex-link $a $b $access_bw $access_delay DropTail }
$ns duplex-link $r1 $r2 $bw $delay DropTail
$ns queue-limit $r1 $r2 $limit
if {[llength $drops]} {
    set losses [new ErrorModel/List]
    $losses unit pkt
    $losses droplist $drops
    $losses drop-target [new Agent/Null]
    [$ns link $r1 $r2] errormodule $losses
}

# Keeps, for each flow, the time at which a new sequence number last arrived.
proc arrived {line} {
    global ns seen t_rx
    if {[lindex $line 0] ne "r" || [lindex $line 4] ne "tcp" || [lindex $line 5] <= 60} return
    set key [lindex $line 7],[lindex $line 10]
    if {[info exists seen($key)]} return
    set seen($key) 1
    set t_rx([lindex $line 7]) [$ns now]
}
set last [$ns link $r2 $h2]
set tap [$ns create-trace Recv {} $r2 $h2]
$tap set callback_ 1
$tap proc handle line {arrived $line}
$tap target [[$last set ttl_] target]
[$last set ttl_] target $tap

set flows [llength $starts]
set left $flows
proc finished {i} {
    global ns left flows tcp t_ack t_rx starts epoch
    if {[info exists t_ack($i)]} return
    set t_ack($i) [$ns now]
    if {[incr left -1] > 0} return
    for {set f 0} {$f < $flows} {incr f} {
        set s [expr $epoch + [lindex $starts $f]]
        puts "FLOW [expr $t_ack($f) - $s] [expr $t_rx($f) - $s] [$tcp($f) set ndatapack_] [$tcp($f) set nrexmitpack_] [$tcp($f) set nrexmit_] [$tcp($f) set ncwndcuts1_]"
    }
    exit 0
}
array set agents {tahoe Agent/TCP reno Agent/TCP/Reno newreno Agent/TCP/Newreno sack Agent/TCP/Sack1}
for {set i 0} {$i < $flows} {incr i} {
    set tcp($i) [new $agents($agent)]
    set sink_class [expr {$agent eq "sack" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]
    if {$delack > 0} { append sink_class /DelAck }
    set sink [new $sink_class]
    if {$delack > 0} { $sink set interval_ $delack }
    $tcp($i) set fid_ $i
    $ns attach-agent $h1 $tcp($i)
    $ns attach-agent $h2 $sink
    $ns connect $tcp($i) $sink
    $tcp($i) proc done {} "finished $i"
    $ns at 0.0 "$tcp($i) set ssthresh_ $ssthresh"
    $ns at [expr $epoch + [lindex $starts $i]] "$tcp($i) advanceby $segments"
}
if {[llength $cbr]} {
    lassign $cbr bytes interval
    set udp [new Agent/UDP]
    $udp set packetSize_ 65000
    $udp set fid_ 99
    set null [new Agent/Null]
    $ns attach-agent $c1 $udp
    $ns attach-agent $c2 $null
    $ns connect $udp $null
    set source [new Application/Traffic/CBR]
    $source set packetSize_ $bytes
    $source set interval_ $interval
    $source attach-agent $udp
    $ns at $epoch "$source start"
}
$ns run
