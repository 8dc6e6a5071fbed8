package commands

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/internal/units"
)

// showStale asks each coordinator separately and prints the answers. It needs no leader, quorum or NATS, and fails only
// if no coordinator answers.
func showStale(a *app, cl *client.Client) error {
	o := judge(cl.Survey(a.ctx))
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if err := a.print(o, func(w io.Writer) { writeOutlook(w, o) }); err != nil {
		return err
	}
	if !o.heard {
		return fmt.Errorf("%w: %s", client.ErrUnavailable, o.said())
	}
	return nil
}

func writeOutlook(w io.Writer, o *outlook) {
	t := newTable(w, []string{"ID", "HTTP", "ROLE", "TERM", "LAST", "APPLIED", "HEARS", "CONTACT", "MISSING", "VERSION", "STATE"}, 4, 5, 6, 8, 9)
	for i := range o.Members {
		s := &o.Members[i]
		if !s.Answered {
			t.AppendRow(rowOf(dash(s.ID), s.HTTP, "-", "-", "-", "-", "-", "-", "-", "-", "does not answer: "+s.Problem))
			continue
		}
		t.AppendRow(rowOf(s.ID, s.HTTP, s.Role, fmt.Sprint(s.Term), units.Count(s.Last), units.Count(s.Applied), dash(s.Leader),
			contactOf(s.Contact), units.Count(s.Missing), s.Version, dash(s.Problem)))
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

func contactOf(ms int64) string {
	if ms < 0 {
		return "never"
	}
	return fmt.Sprintf("%d ms", ms)
}
