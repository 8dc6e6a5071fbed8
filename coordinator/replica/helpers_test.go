package replica

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var subjects = protocol.Subjects{Cluster: "test"}

// member is one coordinator: its NATS server, its folder, its Blobs.
type member struct {
	*Blobs
	server *bus.Server
	stop   func()
	up     bool
}

// cluster starts coordinators a, b, c... Their NATS servers are one cluster.
func cluster(t *testing.T, n int) []*member {
	t.Helper()
	var members []*member
	var routes []string
	for i := range n {
		m := &member{Blobs: &Blobs{Self: name(i), Subjects: subjects, Log: slog.New(slog.DiscardHandler)}}
		for p := range n {
			if p != i {
				m.Peers = append(m.Peers, name(p))
			}
		}
		m.start(t, routes)
		routes = append(routes, m.server.RouteURL())
		m.Folder = openFolder(t)
		m.serve(t)
		members = append(members, m)
	}
	// A subscription reaches the other servers a moment after its own.
	for _, m := range members {
		for _, p := range m.Peers {
			testkit.Until(t, "an answer of "+p, func() bool {
				_, err := m.Conn.Request(testkit.Context(t), subjects.CoordinatorBlobs(p),
					(&protocol.BlobGet{Digest: blobs.Sum([]byte("none"))}).Append(nil))
				return err == nil
			})
		}
	}
	return members
}

func name(i int) string { return string(rune('a' + i)) }

func (m *member) start(t *testing.T, routes []string) {
	t.Helper()
	m.server = natstest.Server(t, bus.ServerOptions{Name: m.Self, Cluster: "test", RoutePort: -1, Routes: routes})
	m.Conn = natstest.Connect(t, m.server)
}

func (m *member) serve(t *testing.T) {
	t.Helper()
	stop, err := m.Serve()
	if err != nil {
		t.Fatal(err)
	}
	m.stop, m.up = stop, true
	t.Cleanup(m.down)
}

// down takes a coordinator away: it serves nothing any more.
func (m *member) down() {
	if m.up {
		m.up = false
		m.stop()
	}
}

func openFolder(t *testing.T) *blobs.Folder {
	t.Helper()
	f, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// soon fails the test if f takes as long as a timeout does.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > protocol.BlobCopy/3 {
		t.Errorf("%s took %v", what, took)
	}
}

// bytesOf makes n bytes that differ by seed.
func bytesOf(n int, seed byte) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// holders counts the coordinators that have the right bytes of a blob.
func holders(members []*member, digest string) (n int) {
	for _, m := range members {
		if b, err := m.Folder.Get(digest); err == nil && blobs.Sum(b) == digest {
			n++
		}
	}
	return n
}

// pull fetches a blob as a worker does.
func pull(t *testing.T, c *bus.Conn, subject, digest string) ([]byte, error) {
	t.Helper()
	var b bytes.Buffer
	err := c.FetchBlob(testkit.Context(t), subject, digest, 0, &b)
	return b.Bytes(), err
}

// deaf subscribes to a subject and never answers, until the test ends.
func deaf(t *testing.T, c *bus.Conn, subject string) <-chan struct{} {
	t.Helper()
	asked := make(chan struct{}, 100)
	sub, err := c.Serve(subject, "", func([]byte) []byte { asked <- struct{}{}; return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	if err := c.Flush(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	return asked
}

// sent returns bytes as a client sent them, not stored yet.
func sent(t testing.TB, b *member, data []byte) *blobs.Writer {
	t.Helper()
	w, err := b.Folder.Writer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	return w
}
