package main

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
)

// showStale asks each coordinator for itself and prints what each says: what is there
// to see without a leader, a majority or NATS. It fails only where none answers.
func showStale(a *app, cl *client.Client) error {
	o := judge(cl.Survey(a.ctx))
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if err := a.print(o, o.text); err != nil {
		return err
	}
	if !o.any() {
		return fmt.Errorf("%w: %s", client.ErrUnavailable, o.said())
	}
	return nil
}

func (o *outlook) text(w io.Writer) {
	t := newTable(w, []string{"ID", "HTTP", "ROLE", "TERM", "LAST", "APPLIED", "HEARS", "CONTACT", "MISSING", "VERSION", "STATE"}, 4, 5, 6, 8, 9)
	for i := range o.Members {
		s := &o.Members[i]
		if !s.Answered {
			t.AppendRow(rowOf(dash(s.ID), s.HTTP, "-", "-", "-", "-", "-", "-", "-", "-", "does not answer: "+s.Problem))
			continue
		}
		t.AppendRow(rowOf(s.ID, s.HTTP, s.Role, fmt.Sprint(s.Term), count(s.Last), count(s.Applied), dash(s.Leader),
			contactOf(s.Contact), count(s.Missing), s.Version, dash(s.Problem)))
	}
	t.Render()
	fmt.Fprintf(w, "\n%s\n", o.Verdict)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
