package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/protocol"
)

// modelHandlers answer requests about models.
type modelHandlers struct {
	responder
	jobView
	blobs *replica.Blobs
}

// digestPrefix is how many characters of its digest the name of a run's model has at
// least.
const digestPrefix = 12

// modelsOf lists the models of finished jobs. A model is named JOB, or JOB/FOLD if the
// job made one for each fold. The model of a run is named JOB/DIGEST, with the beginning
// of the digest.
func modelsOf(st *state.State) []protocol.ModelInfo {
	list := []protocol.ModelInfo{}
	for _, j := range st.Jobs() {
		for i, ref := range j.Models {
			name := j.Name
			switch {
			case j.Job.Folds > 0:
				name = fmt.Sprintf("%s/%d", j.Name, i)
			case j.Job.Cells != nil:
				name = fmt.Sprintf("%s/%.*s", j.Name, digestPrefix, ref.Digest)
			}
			list = append(list, protocol.ModelInfo{
				Name: name, Job: j.ID, Algorithm: j.Job.Algorithm,
				Dataset: j.Dataset, ModelRef: ref, Time: j.Ended, Suspect: j.Suspect,
			})
		}
	}
	return list
}

// list lists the models in the order of their jobs, or, with newest=N, the last N of
// them.
func (h *modelHandlers) list(r *http.Request) (any, error) {
	list, text := modelsOf(h.store.State()), r.URL.Query().Get("newest")
	if text == "" {
		return list, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%w: newest: want the number of models to list, 1 or more, got %.80q", errBad, text)
	}
	return list[max(0, len(list)-n):], nil
}

// get answers with a model: by its name, its digest, or JOB/DIGEST. The digest is the
// whole one. For a job that is not done its first 12 or more characters suffice.
func (h *modelHandlers) get(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	for _, m := range modelsOf(h.store.State()) {
		job, _, _ := strings.Cut(m.Name, "/")
		if name != m.Name && name != m.Digest && name != job+"/"+m.Digest {
			continue
		}
		blob, err := h.blobs.Open(r.Context(), m.Blob)
		if err != nil {
			h.answer(w, nil, err)
			return
		}
		h.blob(w, blob)
		return
	}
	model, err := h.recorded(r.Context(), name)
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(model)))
	w.Write(model) // an error has no reader any more
}

// recorded finds the model JOB/DIGEST of a run of a job that is not done. It reads the
// recorded results of the runs one after the other. A result that cannot be read may have
// the model: the error says so if no other has it.
func (h *modelHandlers) recorded(ctx context.Context, name string) ([]byte, error) {
	st := h.store.State()
	job, digest, ok := strings.Cut(name, "/")
	j := st.JobByName(job)
	if !ok || len(digest) < digestPrefix || j == nil || j.Job.Cells == nil || !j.Job.Cells.Models {
		return nil, noModel(st, name)
	}
	none := noModel(st, name)
	for part := range j.RecordedFrom(j.Round+1, 0) {
		if !part.WasRun() {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b, err := h.blobs.Get(ctx, part.Digest.String())
		if err != nil {
			none = fmt.Errorf("run %d of %v may have the model, but its result cannot be read: %w", part.Task, j, err)
			continue
		}
		if model, err := modelIn(b, digest); model != nil || err != nil {
			return model, err
		}
	}
	return nil, none
}

// modelIn returns the model of a run's outcome if its digest begins so, and nil if not.
func modelIn(outcome []byte, digest string) ([]byte, error) {
	o, err := childjob.Decode(outcome)
	if err != nil {
		return nil, err
	}
	var head struct {
		ModelDigest string `json:"model_digest"`
	}
	if err := json.Unmarshal(o.Head, &head); err != nil {
		return nil, err
	}
	if len(o.Model) == 0 || !strings.HasPrefix(head.ModelDigest, digest) {
		return nil, nil
	}
	return o.Model, nil
}

// noModel says why there is no model of that name.
func noModel(st *state.State, name string) error {
	job, _, _ := strings.Cut(name, "/")
	if j := st.JobByName(job); j != nil && j.ModelDeleted != 0 {
		return fmt.Errorf("%w: the model of %v was deleted", state.ErrNotFound, j)
	} else if d := st.DeletedByName(job); j == nil && d != nil {
		return wasDeleted(d)
	}
	return fmt.Errorf("%w: there is no model %q", state.ErrNotFound, name)
}

// delete deletes the models of a job, and keeps the job.
func (h *modelHandlers) delete(r *http.Request) (any, error) {
	key := r.PathValue("job")
	if job, fold, ok := strings.Cut(key, "/"); ok {
		return nil, fmt.Errorf("%w: the models of all folds are deleted together: name %s, because %s/%.20s alone cannot be deleted", errBad, job, job, fold)
	}
	j, err := findJob(h.store.State(), key)
	if err != nil {
		return nil, err
	}
	index, changed, err := commit(r, h.store, protocol.EntryModelDelete, protocol.ModelDeleteEntry{Job: j.ID, Time: time.Now().Unix()})
	if err != nil {
		return nil, err
	}
	return h.info(changed.(*state.Job), index), nil
}
