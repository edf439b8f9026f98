// quic-go with its defaults, except for flow control. Requests and options as in ../rust/src/lib.rs.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const window = 24_000_000

var config = &quic.Config{
	InitialStreamReceiveWindow:     window,
	MaxStreamReceiveWindow:         window,
	InitialConnectionReceiveWindow: window,
	MaxConnectionReceiveWindow:     window,
}

func main() {
	var err error
	switch {
	case os.Getenv("QUIC_STACK_OPTIONS") != "":
		err = fmt.Errorf("this stack has no options")
	case len(os.Args) == 5 && os.Args[1] == "serve":
		err = serve(os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 5 && os.Args[1] == "fetch":
		var bytes uint64
		if bytes, err = strconv.ParseUint(os.Args[3], 10, 63); err == nil {
			err = fetch(os.Args[2], bytes, os.Args[4])
		}
	default:
		err = fmt.Errorf("usage: serve ADDRESS CERTIFICATE KEY | fetch ADDRESS BYTES AUTHORITY")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(at, certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := quic.ListenAddr(at, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"measure"}}, config)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go answer(connection)
	}
}

func answer(connection *quic.Conn) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		var request [8]byte
		if _, err := io.ReadFull(stream, request[:]); err != nil {
			return
		}
		chunk := make([]byte, 1<<16)
		for left := binary.BigEndian.Uint64(request[:]); left > 0; {
			n, err := stream.Write(chunk[:min(left, uint64(len(chunk)))])
			if err != nil {
				return
			}
			left -= uint64(n)
		}
		stream.Close()
	}
}

func fetch(from string, bytes uint64, authority string) error {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s has no certificate", authority)
	}
	start := time.Now()
	connection, err := quic.DialAddr(context.Background(), from, &tls.Config{RootCAs: roots, ServerName: "server", NextProtos: []string{"measure"}}, config)
	if err != nil {
		return err
	}
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, bytes)); err != nil {
		return err
	}
	stream.Close()
	had, err := io.Copy(io.Discard, stream)
	if err != nil {
		return err
	}
	if uint64(had) != bytes {
		return fmt.Errorf("%d of %d bytes arrived", had, bytes)
	}
	fmt.Printf("%.3f\n", time.Since(start).Seconds())
	return connection.CloseWithError(0, "")
}
