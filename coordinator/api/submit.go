package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// submissionHandlers queue jobs. They check everything for which a job is refused before
// the log has it, except its name and the length of the queue. The state checks these
// when it applies the entry, since other submissions change them.
type submissionHandlers struct {
	jobView
	blobs  *blobHandlers
	quotas Quotas
}

// submitJob resolves the spec of a job against its dataset, and queues the job. The same
// token, or the same name with the same spec, is answered with the job that exists. With check=true it only describes
// the job that it would queue.
func (h *submissionHandlers) submitJob(r *http.Request) (any, error) {
	check := false
	if err := protocol.ReadQuery(r.URL.Query(), "a submission", protocol.Flag("check", &check)); err != nil {
		return nil, bad{err}
	}
	var req protocol.SubmitRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	given, err := json.Marshal(req.Spec)
	if err != nil {
		return nil, err
	}
	st := h.store.State()
	if check {
		return h.checkJob(r, st, &req, given)
	}
	if req.Token == "" || len(req.Token) > protocol.MaxToken {
		return nil, fmt.Errorf("%w: the submission needs a token of 1 to %d characters", errBad, protocol.MaxToken)
	}
	if j := st.JobByToken(req.Token); j != nil { // the first answer was lost
		if j.Owner != access.Of(r.Context()).Name || !bytes.Equal(j.Spec, given) {
			return nil, fmt.Errorf("the token of the submission %w: it was sent with another spec, or by another user; choose "+
				"another token", state.ErrExists)
		}
		return h.info(j, st.Index()), nil
	}
	if d := st.DeletedByToken(req.Token); d != nil {
		return nil, d.Repeated()
	}
	d, job, err := h.resolve(r.Context(), st, &req)
	if err != nil {
		return nil, err
	}
	index, made, err := commit(r, h.store, protocol.EntrySubmit, protocol.SubmitEntry{
		Token: req.Token, Name: req.Spec.Name, Dataset: d.Name, Spec: given, Job: job, Owner: access.Of(r.Context()).Name,
		Private:  isPrivate(r.Context(), req.Shared),
		AuditPPM: auditPPM(&req), MaxQueue: uint32(h.quotas.Queue), MaxOwned: quotaOf(r, st),
		Time: time.Now().Unix(),
	})
	if err != nil {
		return nil, err
	}
	j := made.(*state.Job)
	return h.info(j, index), ownName(r.Context(), j)
}

// auditPPM returns how many tasks of a million are computed twice.
func auditPPM(req *protocol.SubmitRequest) uint32 { return uint32(math.Ceil(req.Audit * 1e6)) }

// ownName returns an error if the job that had the name and the spec of a submission before is private to another user.
func ownName(ctx context.Context, j *state.Job) error {
	if access.Reads(ctx, j.Ownership) {
		return nil
	}
	return fmt.Errorf("job %q %w and is private: it belongs to %s; choose another name", j.Name, state.ErrExists, j.Owner)
}

// checkJob describes the job that a submission would queue, or the job that has its name and spec already.
func (h *submissionHandlers) checkJob(r *http.Request, st *state.State, req *protocol.SubmitRequest,
	given json.RawMessage) (any, error) {
	d, job, err := h.resolve(r.Context(), st, req)
	if err != nil {
		return nil, err
	}
	if req.Spec.Name != "" {
		j, err := st.SameJob(&protocol.SubmitEntry{Name: req.Spec.Name, Dataset: d.Name, Job: job, AuditPPM: auditPPM(req)})
		if err != nil {
			return nil, err
		}
		if j != nil {
			return h.info(j, st.Index()), ownName(r.Context(), j)
		}
	}
	return protocol.JobInfo{Name: req.Spec.Name, Dataset: d.Name, State: protocol.Queued, Spec: given, Job: job}, nil
}

// resolve checks a submission and makes its job.
func (h *submissionHandlers) resolve(ctx context.Context, st *state.State,
	req *protocol.SubmitRequest) (*protocol.Dataset, *round.Job, error) {
	if !(req.Audit >= 0 && req.Audit <= 1) {
		return nil, nil, fmt.Errorf("%w: audit: want a fraction from 0 to 1, got %v", errBad, req.Audit)
	}
	if req.Spec.Name != "" {
		if err := checkName("job", req.Spec.Name); err != nil {
			return nil, nil, err
		}
	}
	d, err := findDataset(st, req.Spec.Dataset)
	if err != nil {
		return nil, nil, err
	}
	if err := readDataset(ctx, d); err != nil {
		return nil, nil, err
	}
	job, err := spec.Resolve(req.Spec, d.Manifest)
	if err != nil {
		return nil, nil, bad{err}
	}
	if err := h.needBlobs(ctx, job); err != nil {
		return nil, nil, err
	}
	if job.Weights != "" {
		if err := h.checkWeights(job, d.Manifest); err != nil {
			return nil, nil, err
		}
	}
	if err := h.quotas.checkMemory(job, d.Manifest); err != nil {
		return nil, nil, err
	}
	return d, job, nil
}

// needBlobs returns once a quorum has the blobs that a job names: its split, the groups, and the
// weights that it starts from.
func (h *submissionHandlers) needBlobs(ctx context.Context, j *round.Job) error {
	for _, b := range []struct{ what, digest string }{{"the list of folds", j.Split.Assigned},
		{"the list of groups", j.Split.Groups}, {"the file of weights", j.Weights}} {
		if b.digest == "" {
			continue
		}
		if err := h.blobs.need(ctx, b.what, b.digest); err != nil {
			return err
		}
	}
	return nil
}

// checkWeights refuses a job if its weights do not fit its network. The blob of the
// weights is present.
func (h *submissionHandlers) checkWeights(j *round.Job, m *dataset.Manifest) error {
	b, err := h.blobs.blobs.Folder.Get(j.Weights)
	if err != nil {
		return err
	}
	with, err := j.WithWeights(b)
	if err == nil {
		err = pipeline.FitsWeights(with, m)
	}
	if err != nil {
		return bad{err}
	}
	return nil
}
