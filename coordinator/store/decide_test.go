package store

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/harness/allocs"
)

var errDown = errors.New("does not answer")

// What a node with an empty folder does, by what the other two of three say.
func TestDecideNew(t *testing.T) {
	fresh, down := reply{Answer: Answer{Phase: PhaseNew, Mark: "m"}}, reply{err: errDown}
	begun := reply{Answer: Answer{Phase: PhaseBegun, Founders: map[string]string{"b": "m", "c": "m"}}}
	with := reply{Answer: Answer{Phase: PhaseBegun, Founders: map[string]string{"a": "mine", "b": "m"}}}
	earlier := reply{Answer: Answer{Phase: PhaseBegun, Founders: map[string]string{"a": "former", "b": "m"}}}
	is := func(p Phase) reply { return reply{Answer: Answer{Phase: p, Term: 3}} }
	for i, test := range []struct {
		b, c reply
		want string
	}{
		{down, down, "waits"},
		{fresh, down, "begins"},
		{fresh, fresh, "begins"},
		{begun, down, "waits"},
		{begun, begun, "waits"},
		{earlier, down, "waits"}, // another folder than this was there
		{with, down, "begins"},
		{with, is(PhaseOpening), "waits"},
		{with, is(PhaseMember), "lost"},
		{begun, fresh, "begins"},
		{fresh, is(PhaseOpening), "waits"},
		{fresh, is(PhaseMember), "lost"},
		{fresh, is(PhaseRecovering), "lost"},
		{fresh, is(PhaseLost), "lost"},
		{down, is(PhaseMember), "lost"},
		{down, is(PhaseJoining), "waits"},
		{reply{Answer: Answer{Phase: "later"}}, down, "waits"},
	} {
		v := decideNew("a", "mine", map[string]reply{"b": test.b, "c": test.c})
		got := "waits"
		switch {
		case v.lost != "":
			got = "lost"
		case v.founders != nil:
			got = "begins"
		}
		if got != test.want {
			t.Errorf("%d: %s, want %s: %+v", i, got, test.want, v)
		}
		if got == "begins" && (v.founders["a"] != "mine" || len(v.founders) < 2) {
			t.Errorf("%d: it begins with %v", i, v.founders)
		}
	}
}

// Where all nodes are up and none has more than a first entry, those that have begun
// are a majority and elect, or those that are new are one and begin.
func TestFirstStartEnds(t *testing.T) {
	for _, n := range []int{1, 3, 5, 7} {
		for begun := range n + 1 {
			if begun >= majority(n) {
				continue
			}
			replies := make(map[string]reply)
			for i := range n - 1 {
				r := reply{Answer: Answer{Phase: PhaseBegun}}
				if i >= begun {
					r = reply{Answer: Answer{Phase: PhaseNew, Mark: "m"}}
				}
				replies[fmt.Sprint(i)] = r
			}
			if v := decideNew("self", "mine", replies); v.founders == nil {
				t.Errorf("%d of %d have begun, and the others wait: %+v", begun, n, v)
			}
		}
	}
}

// Whatever majority this node was a part of, in whatever term, whoever of the others
// is down or has forgotten as well: the term that it finds is not an earlier one. And
// a candidate or leader of that term that may still count what this node said is not
// passed over.
func TestDecideLostFindsTheTerm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 3, 4, 5, 7}).Draw(t, "voters")
		term := rapid.Uint64Range(1, 5).Draw(t, "term")
		var voters []string
		for i := range n {
			voters = append(voters, fmt.Sprint(i))
		}
		partners := rapid.Permutation(voters[1:]).Draw(t, "others")[:majority(n)-1] // of node 0
		replies := make(map[string]reply)
		counts := rapid.Bool().Draw(t, "the majority is complete")
		for _, id := range voters[1:] {
			a := Answer{Phase: PhaseMember, Term: rapid.Uint64Range(0, 5).Draw(t, "term of "+id), Voters: voters}
			for i, p := range partners {
				if p == id && (counts || i == 0) { // the first is the candidate, or the leader
					a.Term = max(a.Term, term)
				}
			}
			r := reply{Answer: a}
			switch rapid.IntRange(0, 5).Draw(t, "state of "+id) {
			case 0:
				r = reply{err: errDown}
			case 1:
				r = reply{Answer: Answer{Phase: PhaseLost}}
			case 2:
				r.Voters = nil
			}
			replies[id] = r
		}
		v := decideLost("0", replies)
		if v.term == 0 && len(v.waits) == 0 {
			t.Fatal("it neither decides nor says why not")
		}
		if v.term == 0 {
			return
		}
		candidateDied := replies[partners[0]].Phase == PhaseLost // its process has ended, so it counts nothing more
		if v.term < term && (counts || !candidateDied) {
			t.Fatalf("term %d, but it has acted in %d: %+v", v.term, term, replies)
		}
	})
}

// With every other voter there it always ends.
func TestDecideLostEnds(t *testing.T) {
	replies := map[string]reply{
		"b": {Answer: Answer{Phase: PhaseMember, Term: 4, Voters: []string{"a", "b", "c", "d", "e"}}},
		"c": {Answer: Answer{Phase: PhaseMember, Term: 9}},
		"d": {Answer: Answer{Phase: PhaseRecovering, Term: 5}},
		"e": {Answer: Answer{Phase: PhaseLost}},
	}
	if v := decideLost("a", replies); v.term != 9 || len(v.waits) > 0 {
		t.Errorf("%+v", v)
	}
	replies["d"] = reply{Answer: Answer{Phase: PhaseLost}}
	if v := decideLost("a", replies); v.term != 0 || len(v.waits) != 1 {
		t.Errorf("with two of five proven: %+v", v)
	}
	early := map[string]reply{"b": {Answer: Answer{Phase: PhaseMember, Voters: []string{"a", "b"}}}}
	if v := decideLost("a", early); v.term != 0 || len(v.waits) != 1 {
		t.Errorf("before the first term: %+v", v)
	}
}

// FuzzBegun reads a BEGUN file: what it returns is written and read as the same.
func FuzzBegun(f *testing.F) {
	f.Add([]byte("coppice cluster begun, node a\na one\nb two\n"))
	f.Add([]byte("coppice cluster begun, node a\na one\na two\n"))
	f.Add([]byte("coppice cluster begun, node b\na one"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var founders map[string]string
		allocs.AtMost(t, 256*len(b)+64<<10, "whom a cluster began with", func() { founders = parseBegun(b, "a") })
		if founders == nil {
			return
		}
		dir := &folder{path: t.TempDir()}
		if err := dir.keepBegun("a", founders); err != nil {
			t.Fatal(err)
		}
		if again := readBegun(dir.path, "a"); fmt.Sprint(again) != fmt.Sprint(founders) {
			t.Fatalf("%v is read again as %v", founders, again)
		}
	})
}
