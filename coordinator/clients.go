package coordinator

import (
	"context"
	"errors"
	"time"
)

// keepClients sends the clients of the embedded NATS away while this coordinator is cut
// off from the majority, and lets them in again when it is not: who is connected here
// then hears no leader and is heard by none. It returns when ctx is done.
func (n *node) keepClients(ctx context.Context) {
	if n.nats == nil {
		return
	}
	tick := time.NewTicker(n.cfg.timeouts.CutOff / 4)
	defer tick.Stop()
	well, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why := n.cutOff()
		switch {
		case why == nil:
			well, sent = time.Now(), 0
			if !n.nats.Admits() {
				n.nats.Admit()
				n.cfg.Log.Info("NATS clients can connect again")
			}
		case time.Since(well) >= n.cfg.timeouts.CutOff && sent < 2: // one may have come in just before the first time
			sent++
			clients := n.nats.TurnAway()
			n.cfg.Log.Warn("NATS clients are disconnected, so that they connect to another coordinator", "reason", why, "clients", clients)
		}
	}
}

// cutOff says why workers are better connected to another coordinator, or nil. A leader
// keeps its clients whatever its routes do: it is what they look for.
func (n *node) cutOff() error {
	leader, _ := n.store.Leader()
	switch leader {
	case "":
		return errors.New("this coordinator knows no leader")
	case n.cfg.ID:
		return nil
	}
	return n.natsTrouble()
}
