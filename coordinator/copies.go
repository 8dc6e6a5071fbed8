package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
)

const (
	// missingGrace is how long a blob may be missing before it counts: when an entry
	// refers to it, a majority has the blob, and the other coordinators get it at about
	// the same time.
	missingGrace = time.Second
	// completeEvery is the time between two checks of becomeComplete.
	completeEvery = 100 * time.Millisecond
	// maxOwners bounds how many datasets and jobs a text names that lack blobs.
	maxOwners = 4
)

// copies fetches missing blobs and reports whether this coordinator has all blobs that
// its state refers to. A coordinator without them is no copy of the cluster's data: it
// is not ready, and does not lead if another can.
type copies struct {
	*replica.Fetcher
	state func() *state.State
	log   *slog.Logger
	// complete is true once this coordinator had, at some time since its start, all blobs
	// of a state as recent as the leader's. Until then each missing blob counts at
	// once.
	complete atomic.Bool
}

func newCopies(s *store.Store, b *replica.Blobs, log *slog.Logger) *copies {
	c := &copies{state: s.State, log: log}
	c.Fetcher = replica.NewFetcher(b, func() replica.Referrer { return s.State() }, func() error {
		if _, err := os.Stat(s.LogDir()); err != nil {
			return err // perhaps the disk is missing: the folder of blobs is not made on another disk
		}
		return b.Folder.Remake()
	})
	return c
}

// becomeComplete waits until this coordinator has all blobs of a state as recent as the
// leader's, or ctx is done. applied returns the index up to which the leader has
// applied the log, or false if the leader does not answer.
func (c *copies) becomeComplete(ctx context.Context, applied func(context.Context) (index uint64, ok bool)) {
	target, known := uint64(0), false
	for ctx.Err() == nil {
		if !known {
			target, known = applied(ctx)
		}
		if s := c.Look(); known && s.Index >= target && s.Count == 0 && s.Folder == nil {
			c.complete.Store(true)
			c.log.Info("this coordinator has all blobs", "applied", s.Index)
			return
		}
		wait.For(ctx, completeEvery)
	}
}

// problem returns an error that tells which blobs have been missing for some time, or
// nil.
func (c *copies) problem() error {
	s := c.Shortage()
	text := shortageText(&s, c.complete.Load())
	if text == "" {
		return nil
	}
	if s.Lost > 0 {
		text += ": " + owners(c.state(), c.Lost())
	}
	return errors.New(text)
}

// notReady returns why this coordinator may lack blobs, or nil.
func (c *copies) notReady() error {
	if err := c.problem(); err != nil {
		return err
	}
	if !c.complete.Load() {
		return errors.New("this coordinator has just started and does not know yet whether blobs are missing: it compares its log with the leader's")
	}
	return nil
}

// shortageText says how many blobs are missing and for how long. It is empty if no blob
// counts as missing.
func shortageText(s *replica.Shortage, complete bool) string {
	switch {
	case s.Folder != nil:
		return fmt.Sprintf("the folder of blobs cannot be read: %v", s.Folder)
	case s.Count == 0 || complete && s.Oldest < missingGrace:
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

// owners names the datasets and jobs that refer to lost blobs.
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
		for _, digest := range state.DatasetBlobs(d) {
			refs.Add(digest)
		}
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
