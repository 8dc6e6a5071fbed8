package state

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestReplaced: each training state in a blob that another state takes the place of is listed once, in order, since
// any state before; those beyond the bound are forgotten, and a snapshot has none.
func TestReplaced(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	round := uint64(0)
	commit := func(blob string) *State {
		round++
		m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: round, Blob: blob, Total: 9})
		return m.s
	}
	first := commit(digest('a'))
	if got := first.Replaced().Since(Replaced{}); len(got) != 0 {
		t.Errorf("before any was replaced: %q", got)
	}
	commit(digest('b'))
	second := commit(digest('b')) // the same again
	commit(digest('c'))
	m.do(protocol.EntryCommit, commits(m.s.Epoch(), j.ID, round+1, []byte("in the log"), 99)[0])
	if got := m.s.Replaced().Since(first.Replaced()); !slices.Equal(got, []string{digest('a'), digest('b'), digest('c')}) {
		t.Errorf("since the first state: %q", got)
	}
	if got := m.s.Replaced().Since(m.s.Replaced()); len(got) != 0 {
		t.Errorf("since now: %q", got)
	}
	if got := m.s.Replaced().Since(second.Replaced()); !slices.Equal(got, []string{digest('b'), digest('c')}) {
		t.Errorf("since the second state: %q", got)
	}
	round++
	late := m.s
	for i := range maxReplaced + 2 {
		commit(fmt.Sprintf("%064x", i))
	}
	got := m.s.Replaced().Since(late.Replaced())
	if len(got) != maxReplaced || got[0] != fmt.Sprintf("%064x", 1) || got[maxReplaced-1] != fmt.Sprintf("%064x", maxReplaced) {
		t.Errorf("%d replaced, from %q on", len(got), got[:1])
	}
	read := decode(t, encode(t, m.s))
	if n := len(read.Replaced().Since(late.Replaced())); n != 0 {
		t.Errorf("a snapshot has %d", n)
	}
	m.s = read
	commit(digest('d'))
	if got := m.s.Replaced().Since(late.Replaced()); !slices.Equal(got, []string{fmt.Sprintf("%064x", maxReplaced+1)}) {
		t.Errorf("after a snapshot: %q", got)
	}
}
