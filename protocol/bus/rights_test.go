package bus

import (
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol/rights"
)

// withRights starts a server at which each client publishes up, and subscribes to all and to its
// own subjects. A client without a name has no rights.
func withRights(t *testing.T) *Server {
	t.Helper()
	return startServer(t, ServerOptions{Name: "a", Rights: func(_ rights.Role, name, _ string) rights.NATS {
		if name == "" {
			return rights.NATS{}
		}
		return rights.NATS{Publish: []string{"up"}, Subscribe: []string{"all", "to." + name + ".>"}, Answer: time.Minute}
	}})
}

// TestRights: two clients of other processes reach each other only if both have the right.
func TestRights(t *testing.T) {
	s := withRights(t)
	own := connect(t, Options{Server: s})
	a := connect(t, Options{URLs: []string{s.ClientURL()}, Name: "a", Answers: "to.a.answers"})
	b := connect(t, Options{URLs: []string{s.ClientURL()}, Name: "b", Answers: "to.b.answers"})
	none := connect(t, Options{URLs: []string{s.ClientURL()}})
	up, out, toA := listen(t, own, "up"), listen(t, a, "all"), listen(t, a, "to.a.x")
	for _, subject := range []string{">", "to.*.>", "to.a.x", "up"} {
		for _, c := range []*Conn{b, none} {
			if _, err := c.Subscribe(subject, func(m Message) {
				t.Errorf("another client received %s", m.Subject)
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []*Conn{none, b, own} {
		for _, subject := range []string{"up", "all", "to.a.x"} {
			if err := c.Send(subject, "", message(8, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Flush(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range []<-chan Message{up, up, out, toA} {
		receive(t, got)
	}
	for _, c := range []*Conn{own, a} { // what is on its way has come then
		if err := c.Flush(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range []<-chan Message{up, out, toA} {
		select {
		case m := <-got:
			t.Errorf("a message came from a client without the right to publish %s", m.Subject)
		default:
		}
	}
}

// TestOneAnswer: a client answers each request that it receives once, and publishes nothing else
// on the subject of the answer. Another client publishes nothing there.
func TestOneAnswer(t *testing.T) {
	s := withRights(t)
	own := connect(t, Options{Server: s})
	a := connect(t, Options{URLs: []string{s.ClientURL()}, Name: "a", Answers: "to.a.answers"})
	b := connect(t, Options{URLs: []string{s.ClientURL()}, Name: "b", Answers: "to.b.answers"})
	inbox := listen(t, own, "inbox")
	send := func(c *Conn, subject, reply string) {
		t.Helper()
		if err := c.Send(subject, reply, message(8, 1)); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*Conn{a, b} {
		send(c, "inbox", "") // before there is a request
	}
	asked := listen(t, a, "to.a.ask")
	send(own, "to.a.ask", "inbox")
	receive(t, asked)
	send(b, "inbox", "")
	send(a, "inbox", "")
	receive(t, inbox)
	send(a, "inbox", "") // a second answer
	send(own, "inbox", "end")
	if m := receive(t, inbox); m.Reply != "end" {
		t.Error("a message without a request came")
	}
	if _, err := a.Serve("to.a.serve", "", func(m []byte) []byte { return m }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := own.Request(within(t), "to.a.serve", []byte("x")); err != nil || string(got) != "x" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
