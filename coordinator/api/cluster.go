package api

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// clusterHandlers answer requests about coordinators and workers.
type clusterHandlers struct {
	responder
	id      string
	store   *store.Store
	members *members.Service
	status  Status
	forward *forwarder
}

// ready says whether this coordinator can serve. The text also says what prevents
// training.
func (h *clusterHandlers) ready(w http.ResponseWriter, r *http.Request) {
	err, more := h.status.Ready(), ""
	if h.status.Lacks != nil && r.URL.Query().Get(protocol.ReadyBlobs) != protocol.ReadyBlobsAny {
		if lacks := h.status.Lacks(); lacks != nil && err != nil {
			err = fmt.Errorf("%w; %w", err, lacks)
		} else if lacks != nil {
			err = lacks
		}
	}
	if h.status.Advice != nil {
		more = h.status.Advice(r.Context(), err)
	}
	if more != "" {
		more = "; " + more
	}
	if err != nil {
		http.Error(w, err.Error()+more, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready"+more+"\n")
}

const (
	// maxLocalWait bounds the wait for a leader, whatever the client asks for.
	maxLocalWait = 5 * time.Second
	// localPoll is the time between two checks for a leader if the state does not change.
	localPoll = 20 * time.Millisecond
)

// overview answers with what the leader knows, or, if there is none, with what this
// coordinator knows. With protocol.ClusterLocal it answers with the latter, once there is
// a leader or the wait is over. So a worker that looks for a leader does not ask again
// and again.
func (h *clusterHandlers) overview(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("local") != "true" {
		c := h.status.Cluster()
		if c.Leader == "" || c.Leader == h.id || !h.forward.try(w, r, c.Leader) {
			h.answer(w, c.Listed(), nil)
		}
		return
	}
	ms, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("wait_ms"), "0"), 10, 32)
	if err != nil {
		h.answer(w, nil, fmt.Errorf("%w: wait_ms: want a number of milliseconds, got %q", errBad, r.URL.Query().Get("wait_ms")))
		return
	}
	end := time.NewTimer(min(time.Duration(ms)*time.Millisecond, maxLocalWait))
	defer end.Stop()
	poll := time.NewTicker(localPoll)
	defer poll.Stop()
	for waits := true; waits; {
		_, changed := h.store.Watch()
		if h.status.Heard() {
			break
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			waits = false
		case <-changed:
		case <-poll.C:
		}
	}
	local := h.status.Local()
	h.answer(w, local.Listed(), nil)
}

// self describes this coordinator, even if another one leads.
func (h *clusterHandlers) self(*http.Request) (any, error) { return h.members.Self(), nil }

func (h *clusterHandlers) list(r *http.Request) (any, error) {
	return h.members.List(r.Context()), nil
}

// add adds a coordinator, without a vote. It refuses an id or an address that no
// coordinator can have before it looks for the coordinator.
func (h *clusterHandlers) add(r *http.Request) (any, error) {
	var req protocol.AddRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if err := protocol.CheckID(req.ID); err != nil {
		return nil, bad{err}
	}
	if err := protocol.CheckReachable(req.HTTP); err != nil {
		return nil, bad{fmt.Errorf("http %.80q: %w", req.HTTP, err)}
	}
	return h.members.Add(r.Context(), req)
}

func (h *clusterHandlers) remove(r *http.Request) (any, error) {
	return h.members.Remove(r.Context(), r.PathValue("id"))
}

func (h *clusterHandlers) transfer(r *http.Request) (any, error) {
	var req protocol.TransferRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if err := h.members.Transfer(r.Context(), req.To); err != nil {
		return nil, err
	}
	return h.members.List(r.Context()), nil
}

// trust ends the quarantine of a worker.
func (h *clusterHandlers) trust(r *http.Request) (any, error) {
	if _, _, err := commit(r, h.store, protocol.EntryTrust, protocol.TrustEntry{Worker: r.PathValue("worker")}); err != nil {
		return nil, err
	}
	return h.status.Cluster(), nil
}

// commit has the log accept an entry. It returns the index and the result of the entry
// once it is applied here.
func commit(r *http.Request, s *store.Store, kind protocol.EntryKind, entry any) (index uint64, result any, err error) {
	return s.Propose(r.Context(), protocol.EncodeEntry(kind, entry))
}
