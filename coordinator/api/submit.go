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
// token, or the same name with the same spec, is answered with the job that exists.
func (h *submissionHandlers) submitJob(r *http.Request) (any, error) {
	var req protocol.SubmitRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if req.Token == "" || len(req.Token) > protocol.MaxToken {
		return nil, fmt.Errorf("%w: the submission needs a token of 1 to %d characters", errBad, protocol.MaxToken)
	}
	given, err := json.Marshal(req.Spec)
	if err != nil {
		return nil, err
	}
	st := h.store.State()
	if j := st.JobByToken(req.Token); j != nil { // the first answer was lost
		if j.Owner != access.Of(r.Context()).Name || !bytes.Equal(j.Spec, given) {
			return nil, fmt.Errorf("the token of the submission %w: it was sent with another spec, or by another user; choose another token", state.ErrExists)
		}
		return h.info(j, st.Index()), nil
	}
	if d := st.DeletedByToken(req.Token); d != nil {
		return nil, d.Repeated()
	}
	if !(req.Audit >= 0 && req.Audit <= 1) {
		return nil, fmt.Errorf("%w: audit: want a fraction from 0 to 1, got %v", errBad, req.Audit)
	}
	if req.Spec.Name != "" {
		if err := checkName("job", req.Spec.Name); err != nil {
			return nil, err
		}
	}
	d, err := findDataset(st, req.Spec.Dataset)
	if err != nil {
		return nil, err
	}
	if err := readDataset(r.Context(), d); err != nil {
		return nil, err
	}
	job, err := spec.Resolve(req.Spec, d.Manifest)
	if err != nil {
		return nil, bad{err}
	}
	if err := h.needBlobs(r.Context(), job); err != nil {
		return nil, err
	}
	if job.Weights != "" {
		if err := h.checkWeights(job, d.Manifest); err != nil {
			return nil, err
		}
	}
	if err := h.quotas.checkMemory(job, d.Manifest); err != nil {
		return nil, err
	}
	index, made, err := commit(r, h.store, protocol.EntrySubmit, protocol.SubmitEntry{
		Token: req.Token, Name: req.Spec.Name, Dataset: d.Name, Spec: given, Job: job, Owner: access.Of(r.Context()).Name, Private: isPrivate(r.Context(), req.Shared),
		AuditPPM: uint32(math.Ceil(req.Audit * 1e6)), MaxQueue: uint32(h.quotas.Queue), MaxOwned: quotaOf(r, st), Time: time.Now().Unix(),
	})
	if err != nil {
		return nil, err
	}
	j := made.(*state.Job)
	if !access.Reads(r.Context(), j.Ownership) { // it had the name and the spec before
		return nil, fmt.Errorf("job %q %w and is private: it belongs to %s; choose another name", j.Name, state.ErrExists, j.Owner)
	}
	return h.info(j, index), nil
}

// needBlobs returns once a quorum has the blobs that a job names: its split, and the
// weights that it starts from.
func (h *submissionHandlers) needBlobs(ctx context.Context, j *round.Job) error {
	for _, b := range []struct{ what, digest string }{{"the list of folds", j.Split.Assigned}, {"the file of weights", j.Weights}} {
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
