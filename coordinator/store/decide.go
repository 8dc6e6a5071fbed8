package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reply is what came of asking another node.
type reply struct {
	Answer
	err error
}

// verdict is what a node may do that has asked the others.
type verdict struct {
	founders map[string]string // begin the cluster, with these new folders
	lost     string            // it must have had a log: why
	term     uint64            // obey leaders from this term on
	waits    []string          // for what, where it may do nothing yet
}

func majority(n int) int { return n/2 + 1 }

// decideNew judges what the others say to a node whose folder is new. It begins the
// cluster where a majority of the peers has new folders, or where another has begun
// with this very folder among such a majority.
func decideNew(self, mark string, replies map[string]reply) (v verdict) {
	need := majority(len(replies) + 1)
	founders := map[string]string{self: mark}
	for _, id := range sorted(replies) {
		r := replies[id]
		switch {
		case r.err != nil:
			v.waits = append(v.waits, r.err.Error())
		case r.Phase == PhaseMember, r.Phase == PhaseRecovering, r.Phase == PhaseLost:
			v.lost = fmt.Sprintf("its folder is empty, and the cluster of %s has a log", id)
			return v
		case r.Phase == PhaseNew && r.Mark != "":
			founders[id] = r.Mark
		case r.Phase == PhaseBegun && r.Founders[self] == mark && len(r.Founders) >= need:
			v.founders = r.Founders
		default:
			v.waits = append(v.waits, fmt.Sprintf("%s is %s", id, describe[r.Phase]))
		}
	}
	opening := slices.ContainsFunc(slices.Collect(maps.Values(replies)), func(r reply) bool { return r.err == nil && r.Phase == PhaseOpening })
	switch {
	case opening: // it may have a log
		v.founders = nil
	case v.founders == nil && len(founders) >= need:
		v.founders = founders
	}
	return v
}

// describe says what a phase is, behind "is".
var describe = map[Phase]string{
	PhaseNew: "new", PhaseBegun: "at the beginning of a cluster, without this folder", PhaseOpening: "reading its log", PhaseJoining: "waiting to be added to a cluster",
	PhaseLost: "without its log, and waits as well", PhaseRecovering: "fetching its log", PhaseMember: "a member",
}

// decideLost judges what the others say to a node that has forgotten its term: see
// DESIGN.md, The term. Where it must wait, term is 0.
func decideLost(self string, replies map[string]reply) (v verdict) {
	known := false
	for _, id := range sorted(replies) {
		r := replies[id]
		if r.err != nil || !r.Phase.proven() {
			continue
		}
		v.term = max(v.term, r.Term)
		if len(r.Voters) > 0 {
			known = true
			v.waits = append(v.waits, unheard(self, r.Voters, replies)...)
		}
	}
	if !known {
		for _, id := range sorted(replies) {
			if r := replies[id]; r.err != nil {
				v.waits = append(v.waits, r.err.Error())
			}
		}
		v.waits = append(v.waits, "no coordinator can say yet for certain who votes: the others must elect a leader")
	}
	if v.term == 0 && len(v.waits) == 0 {
		v.waits = append(v.waits, "no coordinator knows of a term yet: the others must elect a leader")
	}
	slices.Sort(v.waits)
	if v.waits = slices.Compact(v.waits); len(v.waits) > 0 {
		v.term = 0
	}
	return v
}

// unheard lists what is missing until a configuration has said enough: each other
// voter must answer, and so many of them must know their terms that each majority
// with this node has one of them.
func unheard(self string, voters []string, replies map[string]reply) (waits []string) {
	n, proven, lost := 1, 0, []string{}
	for _, id := range voters {
		if id == self {
			continue
		}
		n++
		r, asked := replies[id]
		switch {
		case !asked:
			waits = append(waits, id+" has not been asked yet")
		case r.err != nil:
			waits = append(waits, r.err.Error())
		case r.Phase.proven():
			proven++
		case r.Phase == PhaseLost:
			lost = append(lost, id)
		default:
			waits = append(waits, fmt.Sprintf("%s is %s", id, describe[r.Phase]))
		}
	}
	if need := n - majority(n) + 1; len(waits) == 0 && proven < need {
		waits = append(waits, fmt.Sprintf("a majority of the disks is lost: %s has no log either, and %d of the others know their terms where %d are needed; restore a backup",
			strings.Join(lost, ", "), proven, need))
	}
	return waits
}
