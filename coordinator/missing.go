package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// copies tells whether this coordinator has all blobs that its state refers to. Without them it is no copy of the
// cluster's data: it is not ready, and does not lead if another can.
type copies struct {
	*replica.Fetcher
	node *node
	// whole is true once this coordinator had, at one time since its start, all blobs of a state that was as recent as the
	// leader's. Until then each blob that is missing counts at once.
	whole atomic.Bool
}

const (
	// missingGrace is for how long a blob may be on its way here: a majority has it when an entry refers to it, and the
	// other coordinators get it at about the same time.
	missingGrace = time.Second
	// wholeEvery is the time between two looks until this coordinator has been whole.
	wholeEvery = 100 * time.Millisecond
)

func (n *node) newCopies() *copies {
	c := &copies{node: n}
	c.Fetcher = replica.NewFetcher(n.blobs, func() replica.Referrer { return n.store.State() }, func() error {
		if _, err := os.Stat(n.store.LogDir()); err != nil {
			return err // the folder with all that this coordinator has: another disk is not made to look like it
		}
		return n.blobs.Folder.Remake()
	})
	return c
}

// becomeWhole waits until this coordinator has all blobs of a state as recent as the leader's, or ctx is done. applied
// returns up to where the leader has applied the log, if it can be asked.
func (c *copies) becomeWhole(ctx context.Context, applied func(context.Context) (index uint64, ok bool)) {
	target, known := uint64(0), false
	for ctx.Err() == nil {
		if !known {
			target, known = applied(ctx)
		}
		if s := c.Look(); known && s.Index >= target && s.Count == 0 && s.Folder == nil {
			c.whole.Store(true)
			c.node.cfg.Log.Info("this coordinator has all blobs", "applied", s.Index)
			return
		}
		wait.For(ctx, wholeEvery)
	}
}

// leaderApplied returns up to where the leader has applied the log, if it can be asked.
func (c *copies) leaderApplied(ctx context.Context) (index uint64, ok bool) {
	n := c.node
	leader, _ := n.store.Leader()
	switch {
	case leader == "":
		return 0, false
	case leader == n.cfg.ID:
		return n.store.State().Index(), n.leading.Load() != nil // the epoch's entry is applied
	}
	m, found := n.roster.find(leader)
	if !found {
		return 0, false
	}
	var list protocol.Members
	err := ask(ctx, m.HTTP, "/v1/members", &list)
	return list.Applied, err == nil && list.Cluster == n.subjects.Cluster && list.Leader != ""
}

// problem says which blobs are missing, if that is more than one on its way here; else nil.
func (c *copies) problem() error {
	s := c.Shortage()
	text := shortageText(&s, c.whole.Load())
	if text == "" {
		return nil
	}
	if s.Lost > 0 {
		text += ": " + owners(c.node.store.State(), c.Lost())
	}
	return errors.New(text)
}

// notReady says why this coordinator may lack blobs, or nil.
func (c *copies) notReady() error {
	if err := c.problem(); err != nil {
		return err
	}
	if !c.whole.Load() {
		return errors.New("this coordinator has just started and does not know yet whether blobs are missing: it compares its log with the leader's")
	}
	return nil
}

// unfit says why another coordinator should lead, one that has the blobs that this one lacks; nil if none can have them.
func (c *copies) unfit() error {
	if s := c.Shortage(); s.Lost == s.Count && s.Folder == nil {
		return nil
	}
	return c.problem()
}

// shortageText says how many blobs are missing, and for how long, if that is to be told.
func shortageText(s *replica.Shortage, whole bool) string {
	switch {
	case s.Folder != nil:
		return fmt.Sprintf("the folder of blobs cannot be read: %v", s.Folder)
	case s.Count == 0 || whole && s.Oldest < missingGrace:
		return ""
	}
	text := fmt.Sprintf("%d blobs have been missing for %d s; ", s.Count, int(s.Oldest.Seconds()))
	if s.Count == 1 {
		text = fmt.Sprintf("1 blob has been missing for %d s; ", int(s.Oldest.Seconds()))
	}
	switch s.Lost {
	case 0:
		return text + "they are being fetched from other coordinators"
	case s.Count:
		return text + "no coordinator has the missing blobs"
	}
	return text + fmt.Sprintf("they are being fetched from other coordinators, but no coordinator has %d of them", s.Lost)
}

// maxOwners bounds what is named of what lacks blobs.
const maxOwners = 4

// owners names what refers to blobs that no coordinator has.
func owners(s *state.State, lost digests.Set) string {
	var list []string
	add := func(refs digests.Set, what, name, remedy string) {
		var of []string
		for d := range refs {
			if lost.Contains(d) {
				of = append(of, d.String())
			}
		}
		switch {
		case len(of) == 1:
			list = append(list, fmt.Sprintf("%s %s (blob %.12s%s)", what, name, of[0], remedy))
		case len(of) > 1:
			list = append(list, fmt.Sprintf("%s %s (%d blobs, such as %.12s%s)", what, name, len(of), slices.Min(of), remedy))
		}
	}
	for _, d := range s.Datasets() {
		refs := make(digests.Set)
		state.DatasetBlobs(d, refs)
		add(refs, "dataset", d.Name, "; import it again")
	}
	for _, j := range s.Jobs() {
		add(j.References(), "job", j.Name, "")
	}
	if n := len(list); n > maxOwners {
		return strings.Join(list[:maxOwners], ", ") + fmt.Sprintf(" and %d more", n-maxOwners)
	}
	return strings.Join(list, ", ")
}

// describe adds what is missing to what this coordinator says of itself. The look is not older than the call, so it is of
// a state that is as recent as what was said before.
func (c *copies) describe(s *protocol.Self) {
	short := c.Look()
	s.Missing, s.Lost, s.MissingFor = short.Count, short.Lost, short.Oldest.Seconds()
}

// observe sets the gauges.
func (c *copies) observe() {
	s := c.Shortage()
	c.node.metrics.MissingBlobs.Set(float64(s.Count))
	c.node.metrics.MissingSeconds.Set(s.Oldest.Seconds())
}
