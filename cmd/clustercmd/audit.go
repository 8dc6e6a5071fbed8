package clustercmd

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// AuditCmd shows who asked the cluster for which change.
type AuditCmd struct {
	Limit   int       `default:"100" placeholder:"N" help:"Show the newest N records (default: 100)."`
	Since   units.Age `placeholder:"AGE" help:"Show only records that are at most this old, such as 30d, 12h or 1d12h (default: all)."`
	Caller  string    `placeholder:"NAME" help:"Show only the requests of this user or process (default: all)."`
	Refused bool      `help:"Show only requests that were refused."`

	connect.ServerFlags
}

// Help implements kong's HelpProvider.
func (AuditCmd) Help() string {
	return `The newest record is the first: records are sorted by time, and those of one second by number, their order in the log.

A cluster keeps at most 8,000 changes and 2,000 records of refusals. If there are more, it forgets records of the callers
with the most. A change has the name and the role of the caller, its address, the request, and "allowed" or the reason
why the cluster refused it. Requests without the right are counted by caller and minute. In the clear callers have no
name. The command needs the role admin.`
}

// Run implements `coppice audit`.
func (c *AuditCmd) Run(a *cli.App) error {
	if c.Limit < 1 || c.Limit > maxAuditLimit {
		return cli.Usagef("--limit: want a number from 1 to %d, got %d", maxAuditLimit, c.Limit)
	}
	q := protocol.AuditQuery{Limit: c.Limit, Caller: c.Caller, Refused: c.Refused}
	if c.Since > 0 {
		q.Since = max(0, time.Now().Unix()-c.Since.Seconds())
	}
	return connect.Ask(a, c, func(cl *client.Client) ([]shownRecord, error) {
		list, err := cl.Audit(a.Ctx, q)
		shown := []shownRecord{}
		for _, r := range list {
			result := "allowed"
			if r.Refused != "" {
				result = "refused"
			}
			shown = append(shown, shownRecord{r, result})
		}
		return shown, err
	}, func(w io.Writer, shown []shownRecord) {
		t := cli.NewTable(w, []string{"time", "caller", "role", "from", "request", "about", "result"})
		for i := range shown {
			r := &shown[i]
			result, from := cmp.Or(r.Refused, r.Result), r.From
			if r.Via != "" {
				from += " via " + r.Via
			}
			if r.Count > 0 {
				result = fmt.Sprintf("%s refused, the last: %s", units.Plural(int(r.Count), "request"), r.Refused)
			}
			t.AppendRow(cli.Row(cli.Time(r.Time), r.Caller, r.Role, from, r.Request, cmp.Or(r.About, "-"), result))
		}
		t.Render()
	})
}

// shownRecord is an audit record as the command prints it.
type shownRecord struct {
	protocol.AuditRecord

	Result string `json:"result"` // allowed or refused
}

// maxAuditLimit is the number of records that a cluster keeps.
const maxAuditLimit = 10_000
