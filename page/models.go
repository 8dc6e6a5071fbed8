package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// modelsView lists models, the newest first.
func modelsView(v *visit) (*view, error) {
	var data struct {
		list
		Models []modelLine
	}
	var query url.Values
	data.list, query = newList(v)
	if !query.Has("sort") {
		query.Set("sort", "-submitted")
	}
	var answer []protocol.ModelInfo
	after, err := v.api.part(v.Context(), "/v1/models", query, &answer)
	if err != nil {
		return nil, err
	}
	for i := range answer {
		data.Models = append(data.Models, modelLine{&answer[i], v.reads(answer[i].Ownership)})
	}
	data.follow(after)
	return &view{Title: "Models", Section: "models", Template: "models", Data: &data}, nil
}

// modelLine is a model in a list.
type modelLine struct {
	*protocol.ModelInfo
	Read bool // true if the caller may read it
}

// reads reports whether the caller may read something.
func (v *visit) reads(of protocol.Ownership) bool {
	return v.site.Folder != "" || access.Reads(v.Context(), of)
}

// modelPage is the card of a model.
type modelPage struct {
	modelLine
	JobInfo  *protocol.JobInfo
	Measures []setting
	Settings []setting
	Others   int  // models of the same job, which are deleted together
	May      bool // true if the caller may delete it
	Deleting bool // true if the page asks whether to delete it
}

// File is the name of the file that a download writes.
func (p *modelPage) File() string { return strings.ReplaceAll(p.Name, "/", "-") + ".model" }

// modelView shows the card of a model. With ?delete=true, it asks whether to delete the model.
func modelView(v *visit) (*view, error) {
	name := v.PathValue("name")
	m, err := findModel(v, name)
	if err != nil {
		return nil, err
	}
	p := &modelPage{modelLine: modelLine{m, v.reads(m.Ownership)}, JobInfo: new(protocol.JobInfo)}
	if err := v.get("/v1/jobs/"+strconv.FormatUint(m.Job, 10), nil, p.JobInfo); err != nil {
		return nil, err
	}
	p.May = v.may("DELETE /v1/models/{job...}", m.Owner)
	p.Others = len(p.JobInfo.Models) - 1
	if p.Others < 1 { // otherwise the measures are means over several models
		for _, name := range measures.Names() {
			if value, known := p.JobInfo.Measures[name]; known {
				m, _ := measures.Find(name)
				p.Measures = append(p.Measures, setting{m.Title, formatNumber(value)})
			}
		}
	}
	p.Settings = givenOf(p.JobInfo)
	if p.Deleting = v.URL.Query().Get("delete") == "true"; p.Deleting && !p.May {
		return nil, &Error{Status: http.StatusForbidden,
			Text: fmt.Sprintf("Only the owner of the model %s and admins may delete it.", name)}
	}
	return &view{Title: name, Section: "models", Template: "model", Data: p, Still: true}, nil
}

// findModel returns the entry of a model in the list of models.
func findModel(v *visit, name string) (*protocol.ModelInfo, error) {
	var list []protocol.ModelInfo
	if err := v.get("/v1/models", url.Values{"name": {name}}, &list); err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(list, func(m protocol.ModelInfo) bool { return m.Name == name }); at >= 0 {
		return &list[at], nil
	}
	return nil, &Error{Status: http.StatusNotFound,
		Text: fmt.Sprintf("There is no model %.120q. It may have been deleted, or its job has not ended.", name)}
}

// deleteModel deletes the models of a job.
func deleteModel(v *visit) (to string, err error) {
	job, _, _ := strings.Cut(v.PathValue("name"), "/")
	return "/models", v.api.send(v.Context(), http.MethodDelete, "/v1/models/"+url.PathEscape(job), nil, nil, nil)
}
