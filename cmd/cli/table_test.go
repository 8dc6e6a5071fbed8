package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/units"
)

// TestWriteOwned: a list has a column of owners only if something in it has an owner.
func TestWriteOwned(t *testing.T) {
	for _, c := range []struct {
		owners []string
		want   string
	}{{[]string{"", ""}, "name\na\nb\n"}, {[]string{"", "ana"}, "name  owner\na     -\nb     ana\n"}, {nil, "name\n"}} {
		var b bytes.Buffer
		things := []int{0, 1}[:len(c.owners)]
		owner := func(i int) string { return c.owners[i] }
		WriteOwned(&b, []string{"name"}, things, owner, func(i int) []string { return []string{string(rune('a' + i))} })
		if b.String() != c.want {
			t.Errorf("%q:\n%s", c.owners, b.String())
		}
	}
}

func TestWriting(t *testing.T) {
	for got, want := range map[string]string{
		units.Count(0): "0", units.Count(-1234): "-1,234", units.Count(999): "999", units.Count(1000): "1,000",
		units.Count(uint64(1234567)): "1,234,567",
		units.Format(999):            "999 B", units.Format(1536): "1.5 KiB", units.Format(3 << 30): "3.0 GiB",
		units.Duration(0.0421): "42 ms", units.Duration(3.21): "3.2 s", units.Duration(185): "3m05s",
		units.Duration(7500): "2h05m",
		Measure(0):           "0.00000", Measure(1.1e-16): "1.1e-16", Measure(-4e-9): "-4.0e-09",
		Measure(0.12345678): "0.12346", Measure(0.0000333): "0.0000333",
		units.Plural(1, "row"): "1 row", units.Plural(2, "row"): "2 rows", units.Plural(1500, "entry"): "1,500 entries",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNameList(t *testing.T) {
	many := make([]string, 25)
	for i := range many {
		many[i] = fmt.Sprint("f", i)
	}
	many[1], many[2] = "", "x,\ny"
	got := NameList(many)
	if !strings.HasPrefix(got, `f0, "", "x,\ny", f3, `) ||
		!strings.HasSuffix(got, "f19, ... (25 in all; -o json has them)") {
		t.Errorf("got %s", got)
	}
}
