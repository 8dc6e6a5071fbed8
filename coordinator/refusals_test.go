package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestRefusalsAreBounded: however many callers are refused, an entry has at most 17 records. None
// of the refusals is lost, also if the log does not accept an entry.
func TestRefusalsAreBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(testkit.Context(t))
	f := &refusals{counted: func(string) {}}
	note := func(n int) {
		for i := range n {
			c := access.Caller{Role: rights.Anonymous, From: fmt.Sprintf("10.0.%d.%d:%d", i/256, i%256, i)}
			f.note(&c, "GET /v1/jobs", access.ReasonIdentity, errors.New("no identity"))
		}
	}
	note(1000)
	entries := make(chan []protocol.AuditRecord)
	failures, done := 2, make(chan struct{})
	go func() {
		defer close(done)
		f.run(ctx, func(ctx context.Context, list []protocol.AuditRecord) error {
			if failures > 0 {
				failures--
				note(1000)
				return errors.New("no leader")
			}
			select {
			case entries <- list:
			case <-ctx.Done():
			}
			return nil
		}, slog.New(slog.DiscardHandler))
	}()
	defer func() { cancel(); <-done }()
	list := testkit.Receive(t, "an entry", entries)
	var sum, others uint64
	for _, r := range list {
		sum += r.Count
		if r.From == "other callers" {
			others = r.Count
		}
		if r.Caller != "-" || r.Refused != "identity: no identity" || r.Time == 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(list) != maxRefused+1 || sum != 3000 || others < 2900 {
		t.Errorf("%d records of %d refusals, %d of them of others", len(list), sum, others)
	}
	note(1)
	if list := testkit.Receive(t, "the next entry", entries); len(list) != 1 || list[0].Count != 1 ||
		list[0].From != "10.0.0.0" {
		t.Errorf("%+v", list)
	}
}
