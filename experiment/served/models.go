package served

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// digestPrefix is how many characters of its digest the name of a run's model has, as on a cluster.
const digestPrefix = 12

// modelHandlers answer requests about models.
type modelHandlers struct{ *trainings }

// infoOf describes a model of a list.
func (m *modelHandlers) infoOf(p *place) protocol.ModelInfo {
	h := m.head(p)
	info := protocol.ModelInfo{Name: p.name, Job: p.id, Algorithm: h.algorithm, Dataset: h.dataset,
		ModelRef: protocol.ModelRef{Digest: h.digest, Bytes: uint64(p.file.size)}, Time: p.file.seconds()}
	if h.err != nil {
		info.Suspect = h.err.Error()
	}
	return info
}

// ofRuns lists the models of the runs of an experiment.
func (m *modelHandlers) ofRuns(p *place) (list []*place) {
	dir := path.Join(p.path, modelsDir)
	entries, err := fs.ReadDir(m.root.FS(), dir)
	if err != nil {
		return nil // there are none
	}
	for _, e := range entries {
		digest, is := strings.CutSuffix(e.Name(), modelEnd)
		if !is || !e.Type().IsRegular() || len(digest) < digestPrefix || strings.Trim(digest, "0123456789abcdef") != "" {
			continue
		}
		if info, err := e.Info(); err == nil {
			list = append(list, &place{name: p.name + "/" + digest[:digestPrefix], path: path.Join(dir, e.Name()),
				file: stampOf(info)})
		}
	}
	return list
}

// files lists the model files and the models of runs.
func (m *modelHandlers) files(ctx context.Context) ([]*place, error) {
	c, err := m.contents(ctx)
	if err != nil {
		return nil, err
	}
	list := append([]*place{}, c.models...)
	for _, p := range c.experiments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, m.ofRuns(p)...)
	}
	return list, nil
}

func (m *modelHandlers) list(r *http.Request) (any, error) {
	var q protocol.ModelQuery
	if err := readList(r, "a list of models", q.Params(), &q.ListQuery); err != nil {
		return nil, err
	}
	all, err := m.files(r.Context())
	if err != nil {
		return nil, err
	}
	order, _ := q.Order("time")
	needsHeads := q.Algorithm != "" || q.Dataset != "" || order == "algorithm" || order == "dataset"
	chosen, _, next, err := protocol.Part(all, &q.ListQuery, "time", func(at **place) protocol.Element {
		p := *at
		var h head
		if needsHeads && r.Context().Err() == nil {
			h = m.head(p)
		}
		time := float64(p.file.modified)
		return protocol.Element{Name: p.name, Chosen: q.Has(p.name, "", p.file.seconds()) &&
			(q.Algorithm == "" || q.Algorithm == h.algorithm) && (q.Dataset == "" || q.Dataset == h.dataset),
			Keys: map[string]any{"submitted": time, "time": time, "name": p.name, "algorithm": h.algorithm,
				"dataset": h.dataset}}
	})
	if err == nil {
		err = r.Context().Err()
	} else {
		err = noElement(q.After)
	}
	if err != nil {
		return nil, err
	}
	if q.Newest > 0 {
		chosen = chosen[max(0, len(chosen)-q.Newest):]
	}
	list := []protocol.ModelInfo{}
	for _, p := range chosen {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		list = append(list, m.infoOf(p))
	}
	answer := part{list: list}
	if next != "" {
		query := r.URL.Query()
		query.Set("after", next)
		answer.link = fmt.Sprintf("<?%s>; rel=\"next\"", query.Encode())
	}
	return answer, nil
}

// get sends a model file: by its name, or as EXPERIMENT/DIGEST with at least the first characters of the digest.
func (m *modelHandlers) get(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	c, err := m.contents(r.Context())
	if err != nil {
		respond(w, nil, err)
		return
	}
	p := c.byModel[name]
	if at := strings.LastIndexByte(name, '/'); p == nil && at > 0 && len(name[at+1:]) >= digestPrefix {
		if of := c.byExperiment[name[:at]]; of != nil {
			for _, run := range m.ofRuns(of) {
				if strings.HasPrefix(path.Base(run.path), name[at+1:]) {
					p = run
				}
			}
		}
	}
	if p == nil {
		respond(w, nil, notFound("the folder has no model %.200q", name))
		return
	}
	in, err := m.root.Open(p.path)
	if err != nil {
		respond(w, nil, err)
		return
	}
	defer in.Close()
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notFound("%s is not a file any more", p.path)
	}
	if err != nil {
		respond(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	http.ServeContent(w, r, "", info.ModTime(), in)
}
