package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// FuzzPages: no path, query or form of a browser makes the server panic, and none of its text becomes markup.
func FuzzPages(f *testing.F) {
	for _, path := range []string{"", "jobs", "jobs/7", "live/jobs/%zz", "static/a/b", "download/models/../x",
		"download/models/m", "jobs/7/cancel", "jobs/7/share", "compare", "submit", "submit/spec", "experiments",
		"experiments/study",
		"experiments/study/report", "experiments/study/rest", "datasets", "datasets/set", "models", "models/m", "workers",
		"workers/w/trust", "coordinators", "coordinators/a/transfer", "audit", "login", "logout"} {
		f.Add(http.MethodGet, path, "name=a&state=done&job=7&job=7&by=seconds&like=7&method=1&dataset=9&page=2&since=7d", "")
		f.Add(http.MethodPost, path, "", "algorithm=ldlf&dataset=set&trees=x&seed=-1&audit=2&check=true&token=%3Cimg%3E&a=%zz")
		f.Add(http.MethodPost, path, "", "shown=ldlf&algorithm=aa-knn&assigned=%22%3E%3Cimg+src=x&overlap=true&name=%ff")
		f.Add(http.MethodPost, path, "", "spec=name%3A+s%0Adatasets%3A+%5B%5D%0Amethods%3A+%5B%3Cimg%5D&keep_models=true&token=t")
		f.Add(http.MethodPost, path, "", "spec=algorithm%3A+%3Cimg+src%3Dx%3E%0Atrees%3A+%26a+*a&next=%2F%2Fevil")
	}
	x, g := study(protocol.Done, 2, 2)
	api := studyAPI(x, g, map[string]int{})
	j := hostileJob()
	api["/v1/jobs/7"], api["/v1/experiments"] = j, protocol.ExperimentList{Experiments: []protocol.Experiment{x}, Total: 1}
	api["/v1/jobs/7/curve"] = protocol.JobCurve{Points: []curve.Point{{Step: 1, Training: 2}, {Step: 2, Training: 1}}}
	api["/v1/models"] = []protocol.ModelInfo{{Name: "m", Job: 7, Dataset: hostile}}
	api["/v1/datasets"] = []protocol.Dataset{{Name: hostile}}
	api["/v1/cluster"] = cluster("x y z", "x y")
	api["/v1/audit"] = []protocol.AuditRecord{{Caller: hostile, About: hostile}}
	list := protocol.JobList{Jobs: []protocol.JobInfo{j}, Total: 1}
	api["/v1/jobs"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // a check, or a submission
			json.NewEncoder(w).Encode(j)
			return
		}
		json.NewEncoder(w).Encode(list)
	})
	h := Handler(Config{API: api})
	f.Fuzz(func(t *testing.T, method, path, query, form string) {
		u, err := url.Parse("http://host" + Root + "/" + strings.TrimPrefix(path, "/"))
		if err != nil || method != http.MethodGet && method != http.MethodPost || strings.HasPrefix(u.Path, Root+"/live") {
			t.Skip()
		}
		u.RawQuery = query
		r := httptest.NewRequest(method, "http://host/", strings.NewReader(form))
		r.URL = u
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), admin)))
		body := w.Body.String()
		if strings.Contains(body, "fault of Coppice") || strings.Contains(body, "<!doctype") &&
			(strings.Contains(body, "<img") || strings.Contains(body, "onerror=\"")) {
			t.Errorf("%s %s: %s", method, u, body)
		}
		if to := w.Header().Get("Location"); to != "" && !strings.HasPrefix(to, Root) && w.Code == http.StatusSeeOther {
			t.Errorf("%s %s leads to %q", method, u, to)
		}
	})
}
