package api

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit/apitest"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/openapi"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestDescriptionIsServed: every coordinator serves the same description, with the prefix of its proxy.
func TestDescriptionIsServed(t *testing.T) {
	a := newSite(t)
	b := a.follower()
	var first, second []byte
	a.get("GET", "/v1/openapi.json", nil, &first)
	b.get("GET", "/v1/openapi.json", nil, &second)
	if string(first) != string(second) || string(first) != string(openapi.Document("")) {
		t.Error("two coordinators have other descriptions")
	}
}

var takes = regexp.MustCompile(`unknown parameter .*: .* takes (.*)$`)

// TestParametersThatHandlersRead: a handler that refuses unknown parameters lists the parameters of the description,
// and the other handlers read only parameters of it.
func TestParametersThatHandlersRead(t *testing.T) {
	a := newSite(t)
	m := a.put("set", 40)
	a.get("POST", "/v1/jobs", protocol.SubmitRequest{Token: "t", Spec: protocol.Spec{Algorithm: "aa-knn", Dataset: "set",
		Name: "job"}}, nil)
	checked := 0
	for _, r := range rights.Requests {
		method, path, _ := strings.Cut(r.Pattern, " ")
		params := apitest.Params(r.Pattern)
		if params == nil || r.Kind&rights.AnyAnswers != 0 || r.Kind&rights.AnyIfLocal != 0 {
			continue
		}
		path = strings.NewReplacer("{job}", "job", "{name}", "set", "{digest}", m.Shards[0].Digest).Replace(path)
		if strings.Contains(path, "/runs") {
			continue // only jobs of experiments have runs: see TestRunParameters
		}
		w := httptest.NewRecorder()
		request := httptest.NewRequest(method, path+"?unheard-of=1", strings.NewReader("{}"))
		inClear(a.cfg).ServeHTTP(w, request)
		var p protocol.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Errorf("%s: %v", r.Pattern, err)
			continue
		}
		found := takes.FindStringSubmatch(p.Error)
		if found == nil || found[1] != strings.Join(params, ", ") || p.Kind != "refused" {
			t.Errorf("%s: %s (%s), want the parameters %v", r.Pattern, p.Error, p.Kind, params)
		}
		checked++
	}
	if checked < 7 {
		t.Errorf("only %d requests were checked", checked)
	}
	all := make(map[string]bool)
	for _, r := range rights.Requests {
		for _, name := range apitest.Params(r.Pattern) {
			all[name] = true
		}
	}
	for name, where := range readFromQueries(t) {
		if !all[name] {
			t.Errorf("%s reads the parameter %q, which the description lacks", where, name)
		}
	}
}

// readFromQueries finds the constants with which handlers call Query().Get, by their text.
func readFromQueries(t *testing.T) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Get" && method.Sel.Name != "Has" {
				return true
			}
			inner, ok := method.X.(*ast.CallExpr)
			if !ok {
				return true
			}
			if of, ok := inner.Fun.(*ast.SelectorExpr); !ok || of.Sel.Name != "Query" {
				return true
			}
			if text, ok := call.Args[0].(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(text.Value)
				found[name] = files.Position(call.Pos()).String()
			}
			return true
		})
	}
	if len(found) < 2 {
		t.Errorf("only %v are read", found)
	}
	return found
}

// TestStatusesOfErrors: the description has each status that statusOf returns.
func TestStatusesOfErrors(t *testing.T) {
	responses := apitest.Responses()
	statuses := []int{http.StatusRequestTimeout, http.StatusServiceUnavailable, protocol.StatusSendBlob,
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusForbidden,
		http.StatusInsufficientStorage, http.StatusInternalServerError, http.StatusUnauthorized,
		http.StatusMisdirectedRequest, http.StatusGone}
	for _, status := range statuses {
		if responses[strconv.Itoa(status)] == nil {
			t.Errorf("the description lacks the status %d", status)
		}
	}
	if status, refused := access.StatusOf(access.ErrOwner); refused && responses[strconv.Itoa(status)] == nil {
		t.Errorf("the description lacks the status %d", status)
	}
}
