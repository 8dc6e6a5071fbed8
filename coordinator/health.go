package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
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
	// complete is true once this coordinator had, at some time since its start, each blob
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

// becomeComplete waits until this coordinator has had each blob of one state as recent as
// the leader's, or ctx is done. Blobs of later states do not count: while an experiment
// runs, some of its newest results are always on their way. applied returns the index up to which the leader has
// applied the log, or false if the leader does not answer.
func (c *copies) becomeComplete(ctx context.Context, applied func(context.Context) (index uint64, ok bool)) {
	target, known := uint64(0), false
	var waits digests.Set // blobs of the first such state that were missing at each look since; nil: there was none
	for ctx.Err() == nil {
		if !known {
			target, known = applied(ctx)
		}
		if s := c.Look(); known && s.Index >= target && s.Folder == nil {
			missing := c.Missing()
			over := func(d digests.Digest) bool { return !missing.Contains(d) && !c.Has(d) } // no state refers to it any longer
			if waits == nil || slices.ContainsFunc(slices.Collect(maps.Keys(waits)), over) {
				waits = missing // other blobs may have taken its place, such as the results of a job that has ended
			}
			maps.DeleteFunc(waits, func(d digests.Digest, _ struct{}) bool { return !missing.Contains(d) })
			if len(waits) == 0 {
				c.complete.Store(true)
				c.log.Info("this coordinator has all blobs", "applied", s.Index)
				return
			}
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
		return errors.New("this coordinator has just started and does not know yet whether blobs are missing: it compares " +
			"its log with the leader's")
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

// If less than closeShare of the disk is free, checkDisk writes a file of probeBytes.
const (
	closeShare = 0.05
	probeBytes = 1 << 20
)

// health knows whether this coordinator can lead and serve: its log and its disk, its
// blobs, and NATS. If it leads but another coordinator can do so better, watch
// transfers the leadership.
type health struct {
	cfg    *settings
	book   *addressBook
	peers  *peers
	store  *store.Store
	nats   *messaging
	copies *copies
	folder *heldFolder

	// disk is the result of the last checkDisk: why the disk accepts no data, or nil.
	disk atomic.Pointer[error]
	// slow tells which round trip is too long for the timeouts. It is empty or nil if
	// none is. The observer sets it.
	slow atomic.Pointer[string]
}

// trouble returns why this coordinator cannot lead or serve as it should, or nil.
func (h *health) trouble() error {
	if err := h.store.Trouble(); err != nil {
		return err
	}
	if full := h.disk.Load(); full != nil {
		return *full
	}
	if h.store.Votes() {
		return h.nats.trouble()
	}
	st := h.store.Stats()
	if st.LastIndex == 0 {
		return fmt.Errorf("this coordinator waits until the leader adds it; if it is not a member yet, run: coppice "+
			"cluster add %s=%s", h.cfg.ID, h.book.self.HTTP)
	}
	text := fmt.Sprintf("this coordinator has no vote yet: it is catching up and has reached log entry %d",
		st.AppliedIndex)
	if s := h.copies.Shortage(); s.Count > 0 {
		text += fmt.Sprintf(", and %d blobs are missing", s.Count)
	}
	return errors.New(text)
}

// problem returns trouble as a text for people, with what does not prevent this
// coordinator from leading.
func (h *health) problem() string {
	if err := errors.Join(h.trouble(), h.copies.problem(), h.store.Unsaved()); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

// warning returns what should be changed although this coordinator can lead and serve,
// or "".
func (h *health) warning() string {
	list := h.store.Guests()
	if text := h.slow.Load(); text != nil && *text != "" {
		list = append(list, *text)
	}
	return strings.Join(list, "; ")
}

// unrecorded returns why this leader cannot write to the log now, or "".
func (h *health) unrecorded() string {
	if err := h.store.Trouble(); err != nil {
		return err.Error()
	}
	age := h.store.Pending()
	if age < jobs.PendingLong {
		return ""
	}
	text := fmt.Sprintf("a log entry has not reached a quorum of the disks for %v", age.Round(time.Second))
	if full := h.disk.Load(); full != nil {
		text += ", and " + (*full).Error()
	}
	return text
}

// checkDisk returns why the disk accepts no data, or nil.
func (h *health) checkDisk() error {
	err := cmp.Or(h.store.Trouble(), h.folder.fault())
	if free, freeErr := blobs.FreeShare(h.cfg.Dir); err == nil && freeErr == nil && free < closeShare {
		err = probe(h.cfg.Dir)
	}
	if err == nil {
		h.disk.Store(nil)
	} else {
		h.disk.Store(&err)
	}
	return err
}

// probe writes a file to a folder, and deletes it.
func probe(dir string) error {
	path := filepath.Join(dir, "PROBE.tmp")
	defer os.Remove(path)
	if err := os.WriteFile(path, make([]byte, probeBytes), 0o600); err != nil {
		return fmt.Errorf("the disk is full: %w", err)
	}
	return nil
}

const (
	// checksPerLoss is how often watch checks NATS while timeouts.NATSLost passes. The
	// second check without NATS asks the others whether they can lead, and the third
	// transfers the leadership. That is soon, because a leader without routes cannot
	// store a model, and a transfer takes less than 0.1 s.
	checksPerLoss = 4
	// minLeads is how long a leader stays at least before it transfers the leadership
	// for lack of NATS, in multiples of timeouts.NATSLost. Otherwise a bad link would
	// make the leadership bounce.
	minLeads = 5
)

// handover decides when a leader transfers the leadership, and which coordinator leads
// next. Its methods are pure. Only the goroutine of health.watch uses it.
type handover struct {
	reason     error     // why this coordinator should not lead, at the last check; nil if it can
	since      time.Time // the first check with a reason
	leadsSince time.Time // the first check at which this coordinator led; zero if it does not lead
	candidate  string    // the coordinator that was ready to lead at the last check
	logged     bool      // true if the log says that no other coordinator is ready
	lacksBlobs bool      // true if the reason is missing blobs
}

// check notes why this coordinator should not lead at this time, or nil, and reports
// whether to transfer the leadership. A reason that is urgent, such as a full disk,
// counts at once.
func (f *handover) check(reason error, urgent, leads bool, now time.Time, t *protocol.Timeouts) bool {
	switch {
	case !leads:
		f.leadsSince = time.Time{}
	case f.leadsSince.IsZero():
		f.leadsSince = now
	}
	if reason == nil {
		*f = handover{leadsSince: f.leadsSince}
		return false
	}
	if f.reason == nil {
		f.since = now
	}
	f.reason = reason
	if urgent {
		return leads
	}
	return leads && now.Sub(f.since) >= t.NATSLost/checksPerLoss/2 && now.Sub(f.leadsSince) >= minLeads*t.NATSLost
}

// agreed notes another coordinator that says it is ready, and reports whether to
// transfer the leadership to it: if it was ready at the last check as well, or the
// reason is urgent.
func (f *handover) agreed(id string, urgent bool) bool {
	again := f.candidate == id
	f.candidate = id
	return again || urgent
}

// watch checks this coordinator until ctx is done. If it should not lead and another
// coordinator is ready, it transfers the leadership: without NATS no worker hears this
// leader, and with a full disk it can store nothing.
func (h *health) watch(ctx context.Context) {
	var f handover
	for range wait.Every(ctx, min(h.cfg.timeouts.DiskProbe, h.cfg.timeouts.NATSLost/checksPerLoss)) {
		reason := h.checkDisk()
		f.lacksBlobs = false
		if reason == nil {
			// Another coordinator should lead only if it may have more blobs.
			if s := h.copies.Shortage(); s.Lost != s.Count || s.Folder != nil {
				reason = h.copies.problem()
			}
			f.lacksBlobs = reason != nil
		}
		urgent := reason != nil
		if !urgent {
			reason = h.nats.trouble()
		}
		isNew := reason != nil && f.reason == nil
		due := f.check(reason, urgent, h.store.IsLeader(), time.Now(), &h.cfg.timeouts)
		if isNew {
			h.cfg.Log.Warn("this coordinator is not ready to lead", "reason", reason)
		}
		if due {
			h.transfer(ctx, &f, urgent)
		}
	}
}

// transfer asks the other coordinators whether they are ready, and transfers the
// leadership if f agrees.
func (h *health) transfer(ctx context.Context, f *handover, urgent bool) {
	to := h.peers.ready(ctx, f.candidate, "")
	if to == "" && !f.lacksBlobs { // perhaps no coordinator has all blobs
		to = h.peers.ready(ctx, f.candidate, "?"+protocol.ReadyBlobs+"="+protocol.ReadyBlobsAny)
	}
	if to == "" {
		f.candidate = ""
		if !f.logged {
			f.logged = true
			h.cfg.Log.Warn("no other coordinator is ready to lead; this coordinator stays the leader", "reason", f.reason)
		}
		return
	}
	if !f.agreed(to, urgent) {
		return
	}
	h.cfg.Log.Warn("this coordinator transfers the leadership", "to", to, "reason", f.reason)
	began := time.Now()
	err := h.store.HandOver(ctx, to)
	if err != nil && ctx.Err() == nil {
		h.cfg.Log.Warn("the leadership could not be transferred yet", "to", to, "error", err)
		return
	}
	h.cfg.Log.Info("the leadership was transferred", "seconds", time.Since(began).Seconds())
}
