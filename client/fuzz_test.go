package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// callSlack is what a call allocates however little comes back: connections, headers,
// tries.
const callSlack = 2 << 20

// liar is a coordinator that answers every request with the same text. The client gives
// up at once.
func liar(f *testing.F) (c *Client, answers func(status int, body []byte)) {
	var status atomic.Int32
	var body atomic.Pointer[[]byte]
	s := serve(f, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		w.Write(*body.Load())
	})
	c = connect(f, s.URL)
	c.Patience = 0
	return c, func(code int, b []byte) {
		status.Store(int32(code))
		body.Store(&b)
	}
}

// FuzzAnswers: whatever a coordinator answers to any call, with whatever status, is taken
// or refused in proportion to its size.
func FuzzAnswers(f *testing.F) {
	c, answers := liar(f)
	job, err := json.Marshal(protocol.JobInfo{ID: 7, Name: "n", State: protocol.Running, Outcome: json.RawMessage(`{}`),
		Models: []protocol.ModelRef{{}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(200), job)
	f.Add(uint16(200), []byte(`[{},{},{"manifest":{"shards":[{},{}]}}]`))
	f.Add(uint16(200),
		[]byte(`{"points":[{"step":1,"training_loss":0.5,"validation_loss":0.25,"seconds":1}],"folds":[[],[{}]]}`))
	f.Add(uint16(200), []byte(`{"points":[`+strings.Repeat("{},", 100_000)+`{}]}`))
	f.Add(uint16(404), []byte(`{"error":"no"}`))
	f.Add(uint16(503), []byte(`<html>`))
	f.Add(uint16(200), []byte(`{"id":18446744073709551616}`))
	f.Fuzz(func(t *testing.T, status uint16, body []byte) {
		if status < 200 || status > 599 || status == 204 || status == 304 || status/100 == 3 {
			return // without a body, or of another server
		}
		answers(int(status), body)
		ctx := context.Background()
		for what, call := range map[string]func() error{
			"cluster":  func() error { _, err := c.Cluster(ctx); return err },
			"datasets": func() error { _, err := c.Datasets().List(ctx); return err },
			"dataset":  func() error { _, err := c.Datasets().Get(ctx, "d"); return err },
			"delete":   func() error { return c.Datasets().Delete(ctx, "d") },
			"submit":   func() error { _, err := c.Jobs().Submit(ctx, protocol.Spec{}); return err },
			"jobs":     func() error { _, err := c.Jobs().All(ctx); return err },
			"job":      func() error { _, err := c.Jobs().Get(ctx, "j"); return err },
			"end":      func() error { _, err := c.Jobs().Delete(ctx, "7", "8"); return err },
			"prune":    func() error { _, err := c.Jobs().Prune(ctx, protocol.PruneRequest{}); return err },
			"unmodel":  func() error { _, err := c.Models().Delete(ctx, "7"); return err },
			"curve":    func() error { _, err := c.Jobs().Curve(ctx, "j"); return err },
			"models":   func() error { _, err := c.Models().List(ctx); return err },
			"blob":     func() error { _, err := c.Blobs().Get(ctx, strings.Repeat("0", 64)); return err },
			"model":    func() error { _, err := c.Models().Get(ctx, "m"); return err },
		} {
			allocs.AtMost(t, 128*len(body)+callSlack, what, func() {
				if err := call(); err == nil && status >= 300 {
					t.Errorf("%s: status %d passes", what, status)
				}
			})
		}
	})
}

// FuzzWatch: whatever lines a watch brings, what is told of a job never goes back, and a
// line that is no JSON ends this try.
func FuzzWatch(f *testing.F) {
	c, answers := liar(f)
	var stop func()
	c.Waiting = func(error) { stop() } // before another try
	f.Add([]byte("{\"id\":3,\"state\":\"running\",\"rounds\":2}\n\n{\"id\":3,\"state\":\"done\",\"rounds\":1}\n"))
	f.Add([]byte("{\"rounds\":5}\n{\"rounds\":4}\n{"))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		answers(http.StatusOK, body)
		rounds, final := uint64(0), false
		see := func(j *protocol.JobInfo) {
			if final || j.Rounds < rounds && !j.State.Final() {
				t.Fatalf("round %d after %d, final %v", j.Rounds, rounds, final)
			}
			rounds, final = j.Rounds, j.State.Final()
		}
		allocs.AtMost(t, 128*len(body)+callSlack, "a watch", func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			stop = cancel
			c.Jobs().Watch(ctx, "3", see)
		})
	})
}

// FuzzSurvey: whatever a coordinator says of itself and of the others, few others are
// asked, each once, and none that was asked already.
func FuzzSurvey(f *testing.F) {
	f.Add([]byte(`{"id":"a","http":"h:1","phase":"member","voters":[{"id":"b","http":"h:2"}]}`),
		[]byte(`{"coordinators":[{"id":"c","http":"h:3"},{"id":"b","http":"h:2"}]}`))
	f.Add([]byte(`{}`), []byte(`null`))
	f.Add([]byte(`{"voters":[`+strings.Repeat(`{"http":"h:2"},`, 40)+`{}]}`), []byte(`{`))
	f.Fuzz(func(t *testing.T, self, local []byte) {
		r := Report{Address: "h:1", Self: new(protocol.Self), Local: new(protocol.Cluster)}
		if json.Unmarshal(self, r.Self) != nil || json.Unmarshal(local, r.Local) != nil {
			r.Local = nil
		}
		r.ID = r.Self.ID
		more := others([]Report{r}, nil)
		seen := map[string]bool{"h:1": true}
		for _, one := range more {
			if one.Address == "" || seen[one.Address] || r.ID != "" && one.ID == r.ID {
				t.Errorf("%+v is asked", one)
			}
			seen[one.Address] = true
		}
		if list := merged(append([]Report{r}, more...), nil); len(list) != len(more)+1 || len(more) > maxOthers {
			t.Errorf("%d others, %d reports", len(more), len(list))
		}
	})
}

// TestEndlessAnswers: an answer that never ends is given up at its bound, not read until
// memory is full.
func TestEndlessAnswers(t *testing.T) {
	var sent atomic.Int64
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		piece := append([]byte(`[`), bytes.Repeat([]byte(`0,`), 32<<10)...)
		for {
			n, err := w.Write(piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	c := connect(t, s.URL)
	c.Patience = 0
	c.maxJSON, c.maxBytes = 1<<20, 1<<20
	ctx := testkit.Context(t)
	for what, call := range map[string]func() error{
		"JSON":  func() error { _, err := c.Jobs().All(ctx); return err },
		"bytes": func() error { _, err := c.Models().Get(ctx, "m"); return err },
	} {
		sent.Store(0)
		var err error
		allocs.AtMost(t, 64<<20, what, func() { err = call() })
		if err == nil || !strings.Contains(err.Error(), "1.0 MiB") || ctx.Err() != nil {
			t.Errorf("%s: error %v after %d bytes", what, err, sent.Load())
		}
	}
	for n, passes := range map[int]bool{3: true, 4: true, 5: false} {
		b, err := io.ReadAll(&limited{r: strings.NewReader("12345"[:n]), limit: 4, left: 4})
		if (err == nil) != passes || passes && len(b) != n {
			t.Errorf("%d bytes where 4 are allowed: %q, error %v", n, b, err)
		}
	}
}
