package coordinator

import (
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
)

// fitness is why a coordinator should not lead just now, and since when.
type fitness struct {
	why   error
	since time.Time
	told  bool // that nobody else can lead either
}

// keepFit hands the leadership over while this coordinator is not fit to lead and
// another says that it is: without NATS no worker hears it, on a full disk nothing
// can be stored. It returns when ctx is done.
func (n *node) keepFit(ctx context.Context) {
	tick := time.NewTicker(min(n.cfg.timeouts.DiskProbe, n.cfg.timeouts.NATSLost/4))
	defer tick.Stop()
	var f fitness
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		disk := n.checkDisk()
		why, bound := disk, time.Duration(0)
		if why == nil {
			why, bound = n.natsTrouble(), n.cfg.timeouts.NATSLost-n.cfg.timeouts.NATSLost/4 // a tick late at most
		}
		switch {
		case why == nil:
			f = fitness{}
			continue
		case f.why == nil:
			f = fitness{since: time.Now()}
			n.cfg.Log.Warn("this coordinator is not ready to lead", "reason", why)
		}
		f.why = why
		if time.Since(f.since) >= bound && n.store.IsLeader() {
			n.handOver(ctx, &f)
		}
	}
}

// handOver makes another coordinator the leader, if one is ready.
func (n *node) handOver(ctx context.Context, f *fitness) {
	to := n.readyPeer(ctx)
	if to == "" {
		if !f.told {
			f.told = true
			n.cfg.Log.Warn("no other coordinator is ready to lead; this one goes on", "reason", f.why)
		}
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

// readyPeer asks the other voters whether they could lead, all at once, and
// returns the first that says yes, or nothing.
func (n *node) readyPeer(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.timeouts.RaftExchange)
	defer cancel()
	voters, _ := n.others()
	answers := make(chan string, len(voters))
	for _, id := range voters {
		go func() {
			if m, ok := n.roster.find(id); ok && peerReady(ctx, m.HTTP) {
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
func peerReady(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
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
	return n.natsTrouble()
}

// problem is trouble as a text for people, with what is no reason not to lead.
func (n *node) problem() string {
	if err := errors.Join(n.trouble(), n.store.Unsaved()); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

// natsTrouble says why workers cannot be reached: no connection, or an embedded
// server that is cut off from the majority of the others'.
func (n *node) natsTrouble() error {
	if !n.conn.Connected() {
		return errors.New("not connected to NATS")
	}
	if n.nats == nil {
		return nil
	}
	voters, _ := n.others()
	if reached := n.nats.Routes() + 1; reached <= (len(voters)+1)/2 {
		return fmt.Errorf("NATS here is connected to %d of the %d others only", reached-1, len(voters))
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
	err := n.store.Trouble()
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
	if err := os.WriteFile(path, make([]byte, probeBytes), 0o644); err != nil {
		return fmt.Errorf("the disk is full: %w", err)
	}
	return nil
}
