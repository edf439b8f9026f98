# The GEO cases in ns-2. usage: ns ns2_geo.tcl rate_mbps buffer flows npkts stop variant wnd sched seed
foreach {i v} {0 rate 1 buf 2 flows 3 npk 4 stop 5 var 6 wnd 7 sched} { set $v [lindex $argv $i] }
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
if {$sched ne "" && $sched ne "default"} { $ns use-scheduler $sched }
set h1 [$ns node]; set r1 [$ns node]; set r2 [$ns node]; set h2 [$ns node]
$ns duplex-link $h1 $r1 1000Mb 0.1ms DropTail
$ns duplex-link $r1 $r2 ${rate}Mb 255ms DropTail
$ns duplex-link $r2 $h2 1000Mb 0.1ms DropTail
$ns queue-limit $h1 $r1 1000000
$ns queue-limit $r2 $h2 1000000
$ns queue-limit $r1 $r2 $buf
$ns queue-limit $r2 $r1 1000000
$ns queue-limit $h2 $r2 1000000
set finished 0
proc fin {} { global ns finished tcps sinks t0 flows stop npk
  set acked 0; set rex 0; set sent 0; set s1 0.0; set s2 0.0
  foreach t $tcps { set a [$t set ack_]; incr acked $a; incr rex [$t set nrexmitpack_]; incr sent [$t set ndatapack_]; set s1 [expr $s1+$a]; set s2 [expr $s2+1.0*$a*$a] }
  puts "sim=[$ns now] acked_pk=$acked sent_pk=$sent rexmit=$rex goodput=[expr $acked*1460*8.0/[$ns now]/1e6] Mbit/s jain=[expr $s1*$s1/($flows*$s2)]"
  exit 0 }
set tcps {}; set rng [new RNG]; $rng seed 1
for {set i 0} {$i<$flows} {incr i} {
  switch $var {
    sack1   { set t [new Agent/TCP/Sack1]; set s [new Agent/TCPSink/Sack1/DelAck] }
    newreno { set t [new Agent/TCP/Newreno]; set s [new Agent/TCPSink/DelAck] }
    fack    { set t [new Agent/TCP/Fack]; set s [new Agent/TCPSink/Sack1/DelAck] }
    default { set t [new Agent/TCP/Linux]; set s [new Agent/TCPSink/Sack1/DelAck]; $s set generateDSacks_ false; $s set ts_echo_rfc1323_ true; $t set timestamps_ true }
  }
  $ns attach-agent $h1 $t; $ns attach-agent $h2 $s; $ns connect $t $s
  $t set packetSize_ 1460; $t set window_ $wnd; $t set windowInit_ 10; $t set maxcwnd_ 0; $t set fid_ $i; $t set tcpTick_ 0.01; $t set minrto_ 1.0
  if {$var ne "sack1" && $var ne "newreno" && $var ne "fack"} { $ns at 0 "$t select_ca $var" }
  set f [new Application/FTP]; $f attach-agent $t
  set st [expr $flows>1 ? [$rng uniform 0 1.0] : 0.0]
  if {$npk>0} { $ns at $st "$f produce $npk"; $t proc done {} { fin } } else { $ns at $st "$f start" }
  lappend tcps $t
}
if {$stop>0} { $ns at $stop fin }
$ns run
