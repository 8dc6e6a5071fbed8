package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// fitness is why a coordinator should not lead just now, and since when.
type fitness struct {
	why   error
	since time.Time
	leads time.Time // since when it leads; zero: it does not
	next  string    // another that was ready to lead at the last look
	told  bool      // that nobody else can lead either
	blobs bool      // true if why is that blobs are missing
}

// looks is how often NATS is looked at while NATSLost passes. The second look without NATS asks
// others whether they can lead, the third transfers the leadership. That is soon, because a
// leader whose routes are cut cannot store a model, and a transfer takes less than 0.1 s.
const looks = 4

// rests is for how many times NATSLost a leadership lasts at least before it is handed over
// for NATS: over a bad link another coordinator is soon no better off.
const rests = 5

// look takes note of how things are, and reports whether it is time to hand over. What
// the disk says counts at once.
func (f *fitness) look(why error, disk, leads bool, now time.Time, t *protocol.Timeouts) bool {
	switch {
	case !leads:
		f.leads = time.Time{}
	case f.leads.IsZero():
		f.leads = now
	}
	if why == nil {
		*f = fitness{leads: f.leads}
		return false
	}
	if f.why == nil {
		f.since = now
	}
	f.why = why
	if disk {
		return leads
	}
	return leads && now.Sub(f.since) >= t.NATSLost/looks/2 && now.Sub(f.leads) >= rests*t.NATSLost
}

// agreed takes note of another coordinator that says it is ready, and reports whether it
// said so at the last look as well; where the disk is full once is enough.
func (f *fitness) agreed(id string, disk bool) bool {
	again := f.next == id
	f.next = id
	return again || disk
}

// keepFit hands the leadership over while this coordinator is not fit to lead and
// another says that it is: without NATS no worker hears it, on a full disk nothing
// can be stored. It returns when ctx is done.
func (n *node) keepFit(ctx context.Context) {
	tick := time.NewTicker(min(n.cfg.timeouts.DiskProbe, n.cfg.timeouts.NATSLost/looks))
	defer tick.Stop()
	var f fitness
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why := n.checkDisk()
		f.blobs = false
		if why == nil {
			why = n.copies.unfit()
			f.blobs = why != nil
		}
		disk := why != nil // or blobs
		if !disk {
			why = n.natsTrouble()
		}
		news := why != nil && f.why == nil
		due := f.look(why, disk, n.store.IsLeader(), time.Now(), &n.cfg.timeouts)
		if news {
			n.cfg.Log.Warn("this coordinator is not ready to lead", "reason", why)
		}
		if due {
			n.handOver(ctx, &f, disk)
		}
	}
}

// handOver makes another coordinator the leader, if one is ready, and was at the last look.
func (n *node) handOver(ctx context.Context, f *fitness, disk bool) {
	to := n.readyPeer(ctx, f.next, "")
	if to == "" && !f.blobs { // perhaps no coordinator has all blobs
		to = n.readyPeer(ctx, f.next, "?"+protocol.ReadyBlobs+"="+protocol.ReadyBlobsAny)
	}
	if to == "" {
		f.next = ""
		if !f.told {
			f.told = true
			n.cfg.Log.Warn("no other coordinator is ready to lead; this coordinator stays the leader", "reason", f.why)
		}
		return
	}
	if !f.agreed(to, disk) {
		return
	}
	n.cfg.Log.Warn("this coordinator transfers the leadership", "to", to, "reason", f.why)
	began := time.Now()
	err := n.store.HandOver(ctx, to)
	if err != nil && ctx.Err() == nil {
		n.cfg.Log.Warn("the leadership could not be transferred yet", "to", to, "error", err)
		return
	}
	n.cfg.Log.Info("the leadership was transferred", "seconds", time.Since(began).Seconds())
}

// readyPeer asks the other voters whether they could lead, one of them before the others,
// who are asked all at once, and returns the first that says yes, or nothing.
func (n *node) readyPeer(ctx context.Context, before, query string) string {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.timeouts.RaftExchange)
	defer cancel()
	if m, ok := n.roster.find(before); ok && peerReady(ctx, m.HTTP, query) {
		return before
	}
	voters, _ := n.others()
	answers := make(chan string, len(voters))
	for _, id := range voters {
		go func() {
			if m, ok := n.roster.find(id); ok && peerReady(ctx, m.HTTP, query) {
				answers <- id
			} else {
				answers <- ""
			}
		}()
	}
	found := ""
	for range voters { // all, so that no goroutine is left behind
		if id := <-answers; id != "" && found == "" {
			found = id
			cancel()
		}
	}
	return found
}

// peerReady asks a coordinator for /readyz.
func peerReady(ctx context.Context, address, query string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz"+query, nil)
	if err != nil {
		return false
	}
	response, err := asker.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4096))
	return response.StatusCode == http.StatusOK
}

// trouble says why this coordinator cannot lead or serve as it should, or nil: what
// /readyz and `coppice cluster members` tell.
func (n *node) trouble() error {
	if err := n.store.Trouble(); err != nil {
		return err
	}
	if full := n.disk.Load(); full != nil {
		return *full
	}
	if !n.store.Votes() {
		return errors.New(n.joining())
	}
	return n.natsTrouble()
}

// joining says for what a coordinator waits that does not vote.
func (n *node) joining() string {
	st := n.store.Stats()
	if st.LastIndex == 0 {
		return fmt.Sprintf("this coordinator waits until the leader adds it; if it is not a member yet, run: coppice cluster add %s=%s", n.cfg.ID, n.roster.self.HTTP)
	}
	text := fmt.Sprintf("this coordinator has no vote yet: it is catching up and has reached log entry %d", st.AppliedIndex)
	if s := n.copies.Shortage(); s.Count > 0 {
		text += fmt.Sprintf(", and %d blobs are missing", s.Count)
	}
	return text
}

// problem is trouble as a text for people, with what is no reason not to lead.
func (n *node) problem() string {
	if err := errors.Join(n.trouble(), n.copies.problem(), n.store.Unsaved()); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

// natsTrouble says why workers cannot be reached: no connection, or an embedded
// server that is cut off from the majority of the others'.
func (n *node) natsTrouble() error {
	if !n.conn.Connected() {
		return errors.New("this coordinator is not connected to NATS")
	}
	if n.nats == nil {
		return nil
	}
	voters, _ := n.others()
	if reached := n.nats.Routes() + 1; reached <= (len(voters)+1)/2 {
		return fmt.Errorf("NATS on this coordinator is connected to only %d of the %d other coordinators", reached-1, len(voters))
	}
	return nil
}

// The disk is looked at more closely below this share of free space, by writing a
// file of so many bytes.
const (
	closeShare = 0.05
	probeBytes = 1 << 20
)

// checkDisk says why the disk takes no more, or nil, and remembers it.
func (n *node) checkDisk() error {
	err := cmp.Or(n.store.Trouble(), n.own.fault())
	if free, statErr := blobs.FreeShare(n.cfg.Dir); err == nil && statErr == nil && free < closeShare {
		err = probe(n.cfg.Dir)
	}
	if err == nil {
		n.disk.Store(nil)
	} else {
		n.disk.Store(&err)
	}
	return err
}

// probe writes a file to a folder, and removes it.
func probe(dir string) error {
	path := filepath.Join(dir, "PROBE.tmp")
	defer os.Remove(path)
	if err := os.WriteFile(path, make([]byte, probeBytes), 0o600); err != nil {
		return fmt.Errorf("the disk is full: %w", err)
	}
	return nil
}
