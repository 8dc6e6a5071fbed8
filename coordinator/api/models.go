package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/protocol"
)

// registered lists the models of finished jobs: named after the job, or job/fold where it made one
// for each fold, or job/digest, with the beginning of the digest, where they are of cells.
func (s *Server) registered() []protocol.ModelInfo {
	list := []protocol.ModelInfo{}
	for _, j := range s.cfg.Store.State().Jobs() {
		for i, ref := range j.Models {
			name := j.Name
			switch {
			case j.Job.Folds > 0:
				name = fmt.Sprintf("%s/%d", j.Name, i)
			case j.Job.Cells != nil:
				name = fmt.Sprintf("%s/%.12s", j.Name, ref.Digest)
			}
			list = append(list, protocol.ModelInfo{
				Name: name, Job: j.ID, Algorithm: j.Job.Algorithm,
				Dataset: j.Dataset, ModelRef: ref, Time: j.Ended, Suspect: j.Suspect,
			})
		}
	}
	return list
}

// models lists the models of finished jobs in the order of these, or, with newest=N, the last N of them.
func (s *Server) models(r *http.Request) (any, error) {
	list, text := s.registered(), r.URL.Query().Get("newest")
	if text == "" {
		return list, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%w: newest: want the number of models to list, 1 or more, got %.80q", errBad, text)
	}
	return list[max(0, len(list)-n):], nil
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	for _, m := range s.registered() {
		if isNamed(&m, name) {
			blob, err := s.cfg.Blobs.Open(r.Context(), m.Blob)
			if err != nil {
				s.answer(w, nil, err)
				return
			}
			s.stream(w, blob)
			return
		}
	}
	model, err := s.recordedModel(r.Context(), name)
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(model)))
	w.Write(model) // nobody is there to hear of an error
}

// leastDigest is how many characters of a digest name a cell's model.
const leastDigest = 12

// recordedModel looks for the model job/digest of a cell of a job that is not done: it is in the recorded results of cells,
// which are read one after the other. One that cannot be read may have it: that is only said where no other has.
func (s *Server) recordedModel(ctx context.Context, name string) ([]byte, error) {
	st := s.cfg.Store.State()
	job, digest, ok := strings.Cut(name, "/")
	j := st.JobByName(job)
	if !ok || len(digest) < leastDigest || j == nil || j.Job.Cells == nil || !j.Job.Cells.Models {
		return nil, noModel(st, name)
	}
	none := noModel(st, name)
	for part := range j.PartsFrom(j.Round+1, 0) {
		if !part.WasRun() {
			continue
		}
		if ctx.Err() != nil { // nobody waits any more
			return nil, ctx.Err()
		}
		b, err := s.cfg.Blobs.Get(ctx, part.Digest.String())
		if err != nil {
			none = fmt.Errorf("run %d of %v may have the model, but its result cannot be read: %w", part.Unit, j, err)
			continue
		}
		if model, err := modelIn(b, digest); model != nil || err != nil {
			return model, err
		}
	}
	return nil, none
}

// modelIn returns the model of a cell's outcome, if its digest begins so; else nil.
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

// isNamed reports whether a name is that of a model: its own, its digest, or its job's with the whole digest.
func isNamed(m *protocol.ModelInfo, name string) bool {
	job, _, _ := strings.Cut(m.Name, "/")
	return name == m.Name || name == m.Digest || name == job+"/"+m.Digest
}

// noModel says why there is no model of that name.
func noModel(st *state.State, name string) error {
	job, _, _ := strings.Cut(name, "/")
	if j := st.JobByName(job); j != nil && j.ModelDeleted != 0 {
		return fmt.Errorf("%w: the model of %v was deleted", state.ErrNotFound, j)
	} else if d := st.DeletedByName(job); j == nil && d != nil {
		return gone(d)
	}
	return fmt.Errorf("%w: there is no model %q", state.ErrNotFound, name)
}
