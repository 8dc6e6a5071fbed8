package coordinator

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
)

// What /readyz says of workers and of a cluster without a leader is in a few words, with
// who is away and what helps.
func TestStanding(t *testing.T) {
	for _, test := range []struct {
		got  string
		says []string
	}{
		{workersLine(dispatch.Availability{Usable: 1}, "coppice worker --join h:1"), []string{"1 worker"}},
		{workersLine(dispatch.Availability{Usable: 3, Quarantined: []string{"w"}}, "coppice worker --join h:1"),
			[]string{"3 workers"}},
		{workersLine(dispatch.Availability{Unknown: true}, "coppice worker --join h:1"), []string{"yet"}},
		{workersLine(dispatch.Availability{}, "coppice worker --join h:1"),
			[]string{"no worker", "coppice worker --join h:1"}},
		{workersLine(dispatch.Availability{Refused: []string{"v"}, Unreachable: []string{"w"}}, "coppice worker --join h:1"),
			[]string{"none of 2 workers", "coppice cluster"}},
		{withoutLeader(3, []string{"b: refused", "c: silent"}), []string{"1 of 3", "2 are needed", "b: refused",
			"c: silent"}},
		{withoutLeader(3, []string{"", "c: silent"}), []string{"2 of 3", "election", "c: silent"}},
		{withoutLeader(5, []string{"b: x", "c: x", "d: x", ""}), []string{"2 of 5", "3 are needed"}},
		{withoutLeader(3, []string{"", ""}), []string{"all 3", "election"}},
		{withoutLeader(1, nil), []string{"about to lead"}},
	} {
		for _, part := range test.says {
			if !strings.Contains(test.got, part) {
				t.Errorf("%q lacks %q", test.got, part)
			}
		}
	}
}
