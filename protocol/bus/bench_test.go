package bus

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

// conns makes two connections: in-process, or over loopback TCP.
func conns(b *testing.B, tcp bool) (*Conn, *Conn) {
	s := startServer(b, ServerOptions{Name: "a"})
	o := Options{Server: s}
	if tcp {
		o = Options{URLs: []string{s.ClientURL()}}
	}
	return connect(b, o), connect(b, o)
}

func BenchmarkRequest(b *testing.B) {
	for _, tcp := range []bool{false, true} {
		b.Run(fmt.Sprintf("tcp=%v", tcp), func(b *testing.B) {
			server, client := conns(b, tcp)
			if _, err := server.Serve("echo", "", func(m []byte) []byte { return m }); err != nil {
				b.Fatal(err)
			}
			msg := message(64, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Request(context.Background(), "echo", msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSend(b *testing.B) {
	for _, n := range []int{64, 480 << 10, 20 << 20} {
		for _, tcp := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/tcp=%v", n, tcp), func(b *testing.B) {
				from, to := conns(b, tcp)
				got := listen(b, to, "x")
				msg := message(n, 1)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if err := from.Send("x", "", msg); err != nil {
						b.Fatal(err)
					}
					<-got
				}
			})
		}
	}
}

// BenchmarkSendParts sends what a step of a network with a million parameters does: Θ from a coordinator to a
// worker, and a gradient back.
func BenchmarkSendParts(b *testing.B) {
	for _, out := range []bool{true, false} {
		b.Run(fmt.Sprintf("out=%v", out), func(b *testing.B) {
			s := startServer(b, ServerOptions{Name: "a"})
			from, to := connect(b, Options{Server: s}), connect(b, Options{URLs: []string{s.ClientURL()}})
			if !out {
				from, to = to, from
			}
			got := listen(b, to, "x")
			head, body := message(64, 1), make([]byte, 4_000_000)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := from.SendParts("x", "", head, body); err != nil {
					b.Fatal(err)
				}
				to.Room().Reuse((<-got).Data)
			}
		})
	}
}

func BenchmarkFetchBlob(b *testing.B) {
	server, client := conns(b, true)
	h := holds{}
	d := h.put(message(8<<20, 1))
	serveBlobs(b, server, "blobs.a", "", h.open)
	var got bytes.Buffer
	b.SetBytes(8 << 20)
	for b.Loop() {
		got.Reset()
		if err := client.FetchBlob(context.Background(), "blobs.a", d, 0, &got); err != nil {
			b.Fatal(err)
		}
	}
}
