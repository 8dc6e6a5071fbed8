package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/internal/harness/testkit"
)

// model is Raft and what this package adds to it, without time, disks and network:
// messages come in any order, late, or never; processes end; folders are emptied. It
// decides by decideLost, and by the rule of caughtUp.
type model struct {
	rng       *rand.Rand
	nodes     []*modelNode
	ids       []string
	air       []message // on their way
	committed []uint64  // entries, by index
	next      uint64    // entry
	late      bool      // planted: the rule of the commit index in place of the log's end
	guess     bool      // planted: the term is not asked for
	votes     bool      // planted: a node that forgot votes at once
	few       bool      // planted: answers that meet each majority do
}

// message is one on its way, and what its arrival does.
type message struct {
	name string
	f    func()
}

// modelNode is a node. An entry is its term and a number of its own.
type modelNode struct {
	term, voted uint64 // voted: 1 + the candidate
	log         []modelEntry
	phase       Phase

	leads, stands bool
	granted       map[int]bool
	match         map[int]int
	commit        int
	replies       map[string]reply
	goal          *goal
}

type modelEntry struct{ term, id uint64 }

func (n *modelNode) last() (term uint64, index int) {
	if len(n.log) == 0 {
		return 0, 0
	}
	return n.log[len(n.log)-1].term, len(n.log)
}

// begin ends a node's process and begins another.
func (n *modelNode) begin() {
	n.leads, n.stands, n.commit, n.goal, n.replies = false, false, 0, nil, nil
}

// follow brings a node to a later term.
func (n *modelNode) follow(term uint64) {
	if term > n.term {
		n.term, n.voted, n.leads, n.stands = term, 0, false, false
	}
}

func (m *model) send(what string, from, to int, f func()) {
	m.air = append(m.air, message{fmt.Sprint(what, " ", from, " ", to), f})
}

// deliver takes the last message of a name, if there is one.
func (m *model) deliver(name string) {
	for k, a := range slices.Backward(m.air) {
		if a.name == name {
			m.air = slices.Delete(m.air, k, k+1)
			a.f()
			return
		}
	}
}

// stand has a node ask for votes.
func (m *model) stand(i int) {
	n := m.nodes[i]
	if n.phase != PhaseMember || n.leads {
		return
	}
	n.follow(n.term + 1)
	n.voted, n.stands, n.granted = uint64(i)+1, true, map[int]bool{i: true}
	term, lastTerm, last := n.term, uint64(0), 0
	lastTerm, last = n.last()
	for j := range m.nodes {
		if j != i {
			m.send("vote", i, j, func() { m.vote(i, j, term, lastTerm, last) })
		}
	}
}

func (m *model) vote(from, to int, term, lastTerm uint64, last int) {
	n := m.nodes[to]
	if n.phase == PhaseLost || n.phase == PhaseRecovering && !m.votes || term < n.term {
		return
	}
	n.follow(term)
	myTerm, mine := n.last()
	if n.voted != 0 || myTerm > lastTerm || myTerm == lastTerm && mine > last {
		return
	}
	n.voted = uint64(from) + 1
	m.send("grant", to, from, func() { m.elect(from, to, term) })
}

func (m *model) elect(i, by int, term uint64) {
	n := m.nodes[i]
	if !n.stands || n.term != term {
		return
	}
	if n.granted[by] = true; len(n.granted) < majority(len(m.nodes)) {
		return
	}
	n.stands, n.leads, n.match = false, true, make(map[int]int)
	m.propose(i) // as Raft does
}

func (m *model) propose(i int) {
	if n := m.nodes[i]; n.leads {
		m.next++
		n.log = append(n.log, modelEntry{n.term, m.next})
	}
}

// replicate has a leader send the first k of its entries.
func (m *model) replicate(i, j, k int) {
	n := m.nodes[i]
	if !n.leads || i == j {
		return
	}
	term, commit, entries := n.term, n.commit, slices.Clone(n.log[:min(k, len(n.log))])
	m.send("append", i, j, func() { m.append(i, j, term, commit, entries) })
}

func (m *model) append(from, to int, term uint64, commit int, entries []modelEntry) {
	n := m.nodes[to]
	if n.phase == PhaseLost || term < n.term {
		return
	}
	n.follow(term)
	n.stands = false
	for k, e := range entries {
		if k < len(n.log) && n.log[k] != e {
			n.log = n.log[:k]
		}
		if k >= len(n.log) {
			n.log = append(slices.Clip(n.log), e)
		}
	}
	if m.late && n.phase == PhaseRecovering && commit > 0 && commit <= len(n.log) && n.log[commit-1].term == term {
		n.phase = PhaseMember
	}
	have := len(entries)
	m.send("ack", to, from, func() { m.acknowledged(from, to, term, have) })
}

// acknowledged has a leader count, and commit.
func (m *model) acknowledged(i, by int, term uint64, have int) {
	n := m.nodes[i]
	if !n.leads || n.term != term {
		return
	}
	n.match[by] = max(n.match[by], have)
	for k := len(n.log); k > n.commit && n.log[k-1].term == term; k-- {
		count := 1
		for _, have := range n.match {
			if have >= k {
				count++
			}
		}
		if count >= majority(len(m.nodes)) {
			n.commit = k
			break
		}
	}
}

// check holds what a leader has committed against what was committed before.
func (m *model) check() error {
	for i, n := range m.nodes {
		if !n.leads {
			continue
		}
		for k := range n.commit {
			switch id := n.log[k].id; {
			case k == len(m.committed):
				m.committed = append(m.committed, id)
			case m.committed[k] != id:
				return fmt.Errorf("node %d commits entry %d in term %d where %d was committed at %d", i, id, n.term, m.committed[k], k+1)
			}
		}
	}
	return nil
}

// wipe empties a node's folder.
func (m *model) wipe(i int) {
	n := m.nodes[i]
	n.begin()
	n.term, n.voted, n.log, n.phase = 0, 0, nil, PhaseLost
	if m.guess || m.votes {
		n.phase = PhaseRecovering
	}
}

// ask has a node that forgot ask another, and go on where it knows enough.
func (m *model) ask(i, j int) {
	n, other := m.nodes[i], m.nodes[j]
	if i == j || n.phase != PhaseLost {
		return
	}
	if n.replies == nil {
		n.replies = make(map[string]reply)
	}
	a := Answer{Phase: other.phase, Term: other.term}
	if other.phase.proven() {
		a.Voters = m.ids
	}
	n.replies[m.ids[j]] = reply{Answer: a}
	v := decideLost(m.ids[i], n.replies)
	proven := 0
	for _, r := range n.replies {
		if r.Phase.proven() {
			proven++
			if m.few {
				v.term = max(v.term, r.Term)
			}
		}
	}
	if len(v.waits) == 0 || m.few && proven >= len(m.ids)-majority(len(m.ids))+1 {
		n.term, n.phase, n.replies = v.term, PhaseRecovering, nil
	}
}

// askLeader is caughtUp.
func (m *model) askLeader(i, j int) {
	n, leader := m.nodes[i], m.nodes[j]
	if m.late || n.phase != PhaseRecovering {
		return
	}
	if leader.leads && leader.term == n.term && (n.goal == nil || n.goal.term != n.term) {
		n.goal = &goal{leader.term, uint64(len(leader.log))}
	}
	if term, last := n.last(); n.goal != nil && n.goal.term == n.term && term == n.term && uint64(last) >= n.goal.last {
		n.phase = PhaseMember
	}
}

// step does one thing that may happen.
func (m *model) step() {
	i, j := m.rng.IntN(len(m.nodes)), m.rng.IntN(len(m.nodes))
	switch d := m.rng.IntN(100); {
	case d < 50 && len(m.air) > 0:
		k := m.rng.IntN(len(m.air))
		if m.rng.IntN(3) > 0 { // the latest ones: else little comes about
			k = len(m.air) - 1
		}
		a := m.air[k]
		m.air = slices.Delete(m.air, k, k+1)
		a.f()
	case d < 56:
		m.stand(i)
	case d < 62:
		m.propose(i)
	case d < 82:
		m.replicate(i, j, 1+m.rng.IntN(len(m.nodes[i].log)+1))
	case d < 90:
		m.ask(i, j)
	case d < 97:
		m.askLeader(i, j)
	case d < 98:
		m.nodes[i].begin()
	case d < 99 && m.rng.IntN(2) == 0:
		m.wipe(i)
	}
}

func newModel(seed uint64, n int, plant func(*model)) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 0x766f746572))}
	for i := range n {
		m.ids = append(m.ids, fmt.Sprint(i))
		m.nodes = append(m.nodes, &modelNode{phase: PhaseMember})
	}
	if plant != nil {
		plant(m)
	}
	return m
}

// play plays a seed.
func play(seed uint64, n int, plant func(*model)) (committed int, err error) {
	m := newModel(seed, n, plant)
	for range 1500 {
		m.step()
		if err := m.check(); err != nil {
			return len(m.committed), fmt.Errorf("seed %d, %d nodes: %w", seed, n, err)
		}
	}
	return len(m.committed), nil
}

// seeds is how many schedules are played for each number of nodes.
const seeds = 1500

// Whatever is delayed, lost, ended or emptied: nothing that was committed is
// replaced.
func TestModel(t *testing.T) {
	t.Parallel()
	all, seeds := 0, uint64(seeds)
	if testkit.Race { // one goroutine plays all of it: CI plays all seeds without the detector
		seeds /= 10
	}
	for _, n := range []int{3, 5} {
		for seed := range seeds {
			committed, err := play(seed, n, nil)
			if err != nil {
				t.Fatal(err)
			}
			all += committed
		}
	}
	t.Logf("%d schedules, %d entries committed", 2*seeds, all)
	if uint64(all) < 2*seeds {
		t.Error("hardly anything is committed: the model shows nothing")
	}
}

// The model finds what is planted.
func TestModelFinds(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(*model){
		"votes at once":          func(m *model) { m.votes = true },
		"a term that is guessed": func(m *model) { m.guess = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(40 * seeds) {
				if _, err := play(seed, 3, plant); err != nil {
					t.Logf("found: %v", err)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// elected has a node win an election with the votes of others.
func (m *model) elected(i int, by ...int) {
	m.stand(i)
	for _, j := range by {
		m.deliver(fmt.Sprint("vote ", i, " ", j))
		m.deliver(fmt.Sprint("grant ", j, " ", i))
	}
}

// copied has others store the first k entries of a leader, which counts them.
func (m *model) copied(i, k int, to ...int) {
	for _, j := range to {
		m.replicate(i, j, k)
		m.deliver(fmt.Sprint("append ", i, " ", j))
		m.deliver(fmt.Sprint("ack ", j, " ", i))
	}
}

// Of five nodes 1 is emptied, whose vote for 0 is still under way: it must not do
// that three others that know nothing of 0 tell their terms.
func TestEveryOtherVoterIsAsked(t *testing.T) {
	t.Parallel()
	script := func(plant func(*model)) error {
		m := newModel(1, 5, plant)
		m.elected(3, 2, 4) // in term 1
		m.stand(0)         // in term 1, in vain, and in term 2
		m.stand(0)
		m.deliver("vote 0 1")
		m.wipe(1)
		for _, j := range []int{2, 3, 4} {
			m.ask(1, j)
		}
		m.copied(3, 1, 1, 4) // and commits
		if err := m.check(); err != nil {
			return err
		}
		m.ask(1, 0)
		m.copied(3, 1, 1, 4)
		if err := m.check(); err != nil {
			return err
		}
		m.deliver("grant 1 0")
		m.deliver("vote 0 2")
		m.deliver("grant 2 0")
		m.copied(0, 1, 2, 4)
		return m.check()
	}
	if err := script(nil); err != nil {
		t.Error(err)
	}
	if err := script(func(m *model) { m.few = true }); err == nil {
		t.Error("three answers of four do: the script shows nothing")
	}
}

// Of five nodes 1 is emptied, which had acknowledged to 0 more than was committed
// then: it must not do that it has what was.
func TestTheLeadersWholeLogIsFetched(t *testing.T) {
	t.Parallel()
	script := func(plant func(*model)) error {
		m := newModel(1, 5, plant)
		m.elected(0, 1, 2)
		m.propose(0)
		m.copied(0, 1, 2, 3)
		m.copied(0, 2, 1)
		m.wipe(1)
		for _, j := range []int{0, 2, 3, 4} {
			m.ask(1, j)
		}
		m.copied(0, 1, 1)
		m.askLeader(1, 0)
		m.copied(0, 2, 2) // and commits, with what 1 has said before
		if err := m.check(); err != nil {
			return err
		}
		m.elected(3, 1, 4)
		m.copied(3, 2, 1, 4)
		return m.check()
	}
	if err := script(nil); err != nil {
		t.Error(err)
	}
	if err := script(func(m *model) { m.late = true }); err == nil {
		t.Error("what is committed does: the script shows nothing")
	}
}
