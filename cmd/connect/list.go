package connect

import (
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// ChooseFlags choose elements of a list by name and age.
type ChooseFlags struct {
	Name  string    `placeholder:"NAME" help:"List only what has this name. A * stands for any characters."`
	Owner string    `placeholder:"NAME" help:"List only what this user has made."`
	Since units.Age `placeholder:"AGE" help:"List only what is at most this old, such as 30d, 12h or 1d12h."`
	Until units.Age `placeholder:"AGE" help:"List only what is at least this old."`
}

// Times returns the bounds of time of the flags in Unix seconds, 0 for none.
func (f *ChooseFlags) Times() (since, until int64, err error) {
	if f.Since > 0 && f.Until > f.Since {
		return 0, 0, cli.Usagef("{since} and {until}: nothing has an age between the two")
	}
	now := time.Now().Unix()
	if f.Since > 0 {
		since = max(1, now-f.Since.Seconds())
	}
	if f.Until > 0 {
		until = max(1, now-f.Until.Seconds())
	}
	return since, until, nil
}

// ListFlags choose elements of a list, and a part of it.
type ListFlags struct {
	ChooseFlags
	Limit int    `default:"0" placeholder:"N" help:"List only the first N. 0: all."`
	After string `placeholder:"NAME" help:"List only what follows this name in the order of the list, such as the last one of the list before."`
}

// Query returns the query of the flags. params has the parameters of the list, and sort its order.
func (f *ListFlags) Query(q *protocol.ListQuery, params []protocol.Param, sort string) error {
	since, until, err := f.Times()
	if err != nil {
		return err
	}
	if f.Limit < 0 {
		return cli.Usagef("{limit=%d}: want 0 (all) or more", f.Limit)
	}
	*q = protocol.ListQuery{Name: f.Name, Owner: f.Owner, Since: since, Until: until, Sort: sort, Limit: f.Limit,
		After: f.After}
	if err := protocol.CheckParams(params); err != nil {
		return cli.Usage(err)
	}
	return nil
}
