package clustercmd

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TokenCmd has the tokens of users.
type TokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Create a token for a user."`
	List   tokenListCmd   `cmd:"" help:"List the tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token."`
}

// Help implements kong's HelpProvider.
func (TokenCmd) Help() string {
	return `A token proves who a user is, in place of a certificate. A cluster with TLS knows only its hash. Only an admin creates
tokens. The user gets two files, the token and ca.crt, and needs no certificate:

  coppice token create ana --role submit --expires 90d --out ana.token
  coppice context set prod --server 10.0.0.1:7100 --ca-file ca.crt --token-file ana.token

Roles: read shows everything but the samples of datasets. submit also imports data and submits jobs, and changes what
the user has made. admin may do everything.`
}

type tokenCreateCmd struct {
	Name    string    `arg:"" placeholder:"NAME" help:"Name of the user. What the user makes belongs to this name. Several tokens may have the same name."`
	Role    string    `required:"" enum:"admin,submit,read" placeholder:"ROLE" help:"Role: read, submit or admin."`
	Expires units.Age `default:"90d" placeholder:"AGE" help:"How long the token is valid, such as 90d or 12h. 0: until it is revoked (default: 90d)."`
	Quota   uint32    `placeholder:"N" help:"Most jobs of the user that may be queued, running or paused when this token submits one (default: no bound)."`
	Out     string    `placeholder:"FILE" help:"File for the token, with the mode 0600 (default: the token is printed, once)."`

	connect.ChangeFlags
}

// createdToken is what `coppice token create` prints.
type createdToken struct {
	protocol.Token

	Text string `json:"token,omitempty"` // the token; empty with --out
	File string `json:"file,omitempty"`
}

// Run implements `coppice token create`.
func (c *tokenCreateCmd) Run(a *cli.App) error {
	if err := protocol.CheckID(c.Name); err != nil {
		return cli.Usagef("the name %.80q is not valid: want 1 to 64 letters, digits, - or _", c.Name)
	}
	if c.Name == protocol.NoCaller {
		return cli.Usagef("the name %q is not valid: it stands for an unknown caller", c.Name)
	}
	if c.Quota > 0 && c.Role == string(rights.Read) {
		return cli.Usagef("--quota %d: the role read submits no jobs; leave --quota out, or give another --role", c.Quota)
	}
	if info, err := os.Stat(c.Out); err == nil && info.Mode().IsRegular() {
		return fmt.Errorf("--out %s: the file exists, and a token is never overwritten; choose another file", c.Out)
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	text, id, hash := access.NewToken()
	var file *cli.File
	if c.Out != "" {
		if file, err = cli.CreatePrivate(c.Out); err != nil {
			return err
		}
		defer file.Discard()
		if _, err := io.WriteString(file, text+"\n"); err != nil {
			return err
		}
	}
	request := protocol.TokenRequest{ID: id, SHA256: hex.EncodeToString(hash[:]), Role: c.Role, Owner: c.Name,
		Quota: c.Quota}
	if c.Expires > 0 {
		request.Expires = time.Now().Unix() + c.Expires.Seconds()
	}
	made, err := cl.Tokens().Create(a.Ctx, request)
	if err != nil {
		return err
	}
	shown := createdToken{Token: *made, Text: text, File: c.Out}
	if file != nil {
		if err := file.Commit(); err != nil {
			return err
		}
		shown.Text = ""
	}
	return a.Print(shown, func(w io.Writer) {
		list := [][2]string{{"id", made.ID}, {"user", made.Owner}, {"role", made.Role}, {"until", endOf(made)}}
		if made.Quota > 0 {
			list = append(list, [2]string{"quota", units.Plural(int(made.Quota), "job")})
		}
		if c.Out != "" {
			list = append(list, [2]string{"file", c.Out})
		} else {
			list = append(list, [2]string{"token", text})
		}
		cli.WritePairs(w, list)
		if c.Out == "" {
			fmt.Fprintln(w, "write the token to a file with the mode 0600 for --token-file; it is not shown again")
		}
	})
}

// shownToken is a token as `coppice token list` prints it.
type shownToken struct {
	protocol.Token

	State string `json:"state"`
}

type tokenListCmd struct{ connect.ServerFlags }

// Run implements `coppice token list`.
func (c *tokenListCmd) Run(a *cli.App) error {
	return connect.Ask(a, c, func(cl *client.Client) ([]shownToken, error) {
		list, err := cl.Tokens().List(a.Ctx)
		shown := []shownToken{}
		for i := range list {
			state, _ := tokenState(&list[i])
			shown = append(shown, shownToken{list[i], state})
		}
		return shown, err
	}, func(w io.Writer, shown []shownToken) {
		cli.WriteTable(w, []string{"token", "user", "role", "quota", "created", "until", "state"}, shown,
			func(s shownToken) []string {
				one := &s.Token
				quota := "-"
				if one.Quota > 0 {
					quota = units.Count(int(one.Quota))
				}
				state, since := tokenState(one)
				if since != 0 && state != "expired" { // the column until has the end
					state += " at " + cli.Time(since)
				}
				return []string{one.ID, one.Owner, one.Role, quota, cli.Time(one.Created), endOf(one), state}
			}, 4)
	})
}

// endOf says until when a token is valid, unless it is revoked.
func endOf(t *protocol.Token) string {
	if t.Expires == 0 {
		return "no end"
	}
	return cli.Time(t.Expires)
}

// tokenState returns whether a token is valid, expired or revoked, and since when it is not valid.
func tokenState(t *protocol.Token) (state string, since int64) {
	switch {
	case t.Revoked != 0:
		return "revoked", t.Revoked
	case t.Expires != 0 && t.Expires <= time.Now().Unix():
		return "expired", t.Expires
	}
	return "valid", 0
}

type tokenRevokeCmd struct {
	ID string `arg:"" placeholder:"ID" help:"Id of the token, as coppice token list shows it. It is the part between the two underscores of the token."`

	connect.ChangeFlags
}

// Run implements `coppice token revoke`.
func (c *tokenRevokeCmd) Run(a *cli.App) error {
	if err := protocol.CheckTokenID(c.ID); err != nil {
		return cli.Usagef("the argument <ID> is not the id of a token: want 16 hexadecimal digits, as coppice token list " +
			"shows them")
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	tokens := cl.Tokens()
	list, err := tokens.List(a.Ctx)
	if err != nil {
		return err
	}
	ended, err := tokens.Revoke(a.Ctx, c.ID)
	if err != nil {
		return err
	}
	return a.Print(ended, func(w io.Writer) {
		for i := range list {
			if state, since := tokenState(&list[i]); list[i].ID == c.ID && since != 0 {
				fmt.Fprintf(w, "token %s of %s had ended before: it is %s since %s\n", ended.ID, ended.Owner, state,
					cli.Time(since))
				return
			}
		}
		fmt.Fprintf(w, "token %s of %s is revoked; its open streams end within a second\n", ended.ID, ended.Owner)
	})
}

// AuditCmd shows who asked the cluster for which change.
type AuditCmd struct {
	Limit   int       `default:"100" placeholder:"N" help:"Show the newest N records (default: 100)."`
	Since   units.Age `placeholder:"AGE" help:"Show only records that are at most this old, such as 30d, 12h or 1d12h (default: all)."`
	Caller  string    `placeholder:"NAME" help:"Show only the requests of this user or process (default: all)."`
	Refused bool      `help:"Show only requests that were refused."`
	After   uint64    `placeholder:"NUMBER" help:"Show only records that follow the record with this number, which -o json prints (default: all)."`

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
	q := protocol.AuditQuery{Limit: c.Limit, Caller: c.Caller, Refused: c.Refused, After: c.After}
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
		cli.WriteTable(w, []string{"time", "caller", "role", "from", "request", "about", "result"}, shown,
			func(r shownRecord) []string {
				result, from := cmp.Or(r.Refused, r.Result), r.From
				if r.Via != "" {
					from += " via " + r.Via
				}
				if r.Count > 0 {
					result = fmt.Sprintf("%s refused, the last: %s", units.Plural(int(r.Count), "request"), r.Refused)
				}
				return []string{cli.Time(r.Time), r.Caller, r.Role, from, r.Request, cmp.Or(r.About, "-"), result}
			})
	})
}

// shownRecord is an audit record as the command prints it.
type shownRecord struct {
	protocol.AuditRecord

	Result string `json:"result"` // allowed or refused
}

// maxAuditLimit is the number of records that a cluster keeps.
const maxAuditLimit = 10_000
