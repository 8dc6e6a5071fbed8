// Package apitest compares responses of the HTTP API with its description, in tests.
package apitest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-ldl/coppice/protocol/openapi"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// description is the description of the API.
type description map[string]any

var document = sync.OnceValue(func() description {
	var d description
	if err := json.Unmarshal(openapi.Document(""), &d); err != nil {
		panic(err)
	}
	return d
})

// at returns what the description has below some keys, or nil. A reference is followed.
func (d description) at(v any, keys ...string) any {
	for _, key := range append([]string{""}, keys...) {
		m, _ := v.(map[string]any)
		if key != "" {
			v = m[key]
			m, _ = v.(map[string]any)
		}
		if ref, ok := m["$ref"].(string); ok {
			v = d.at(map[string]any(d), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return v
}

// operation returns the description of a request, or nil.
func (d description) operation(pattern string) any {
	method, path, _ := strings.Cut(strings.ReplaceAll(pattern, "...}", "}"), " ")
	path = strings.Replace(path, "/v1/models/{job}", "/v1/models/{name}", 1)
	return d.at(map[string]any(d), "paths", path, strings.ToLower(method))
}

// params lists the names of the parameters of the query of a request.
func (d description) params(pattern string) (names []string) {
	list, _ := d.at(d.operation(pattern), "parameters").([]any)
	for _, p := range list {
		if d.at(p, "in") == "query" {
			names = append(names, d.at(p, "name").(string))
		}
	}
	return names
}

// misfit says how a value differs from a schema; empty: it fits.
func (d description) misfit(at string, v, schema any) string {
	schema = d.at(schema)
	if options, ok := d.at(schema, "anyOf").([]any); ok {
		why := ""
		for _, option := range options {
			if why = d.misfit(at, v, option); why == "" {
				return ""
			}
		}
		return why
	}
	kind, _ := d.at(schema, "type").(string)
	switch v := v.(type) {
	case nil:
		if kind != "" && kind != "null" {
			return at + " is null, want " + kind
		}
	case bool:
		if kind != "" && kind != "boolean" {
			return at + " is a boolean, want " + kind
		}
	case string:
		words, _ := d.at(schema, "enum").([]any)
		if kind != "" && kind != "string" || words != nil && !slices.Contains(words, any(v)) {
			return at + " is " + strconv.Quote(v) + ", want another " + kind
		}
	case json.Number:
		_, err := strconv.ParseUint(strings.TrimPrefix(v.String(), "-"), 10, 64)
		if kind != "" && kind != "number" && (kind != "integer" || err != nil) {
			return at + " is " + v.String() + ", want " + kind
		}
	case []any:
		if kind != "" && kind != "array" {
			return at + " is a list, want " + kind
		}
		for i, one := range v {
			if why := d.misfit(at+"["+strconv.Itoa(i)+"]", one, d.at(schema, "items")); why != "" {
				return why
			}
		}
	case map[string]any:
		return d.misfitObject(at, v, schema, kind)
	}
	return ""
}

// misfitObject is misfit of an object.
func (d description) misfitObject(at string, v map[string]any, schema any, kind string) string {
	if kind == "" {
		return ""
	}
	if kind != "object" {
		return at + " is an object, want " + kind
	}
	properties, _ := d.at(schema, "properties").(map[string]any)
	more := d.at(schema, "additionalProperties")
	for _, key := range slices.Sorted(maps.Keys(v)) {
		of := properties[key]
		if of == nil {
			of = more
		}
		if of == nil {
			return at + " has the key " + key + ", which its schema lacks"
		}
		if why := d.misfit(at+"."+key, v[key], of); why != "" {
			return why
		}
	}
	required, _ := d.at(schema, "required").([]any)
	for _, key := range required {
		if _, ok := v[key.(string)]; !ok {
			return at + " lacks the key " + key.(string)
		}
	}
	return ""
}

// copied keeps what a handler writes.
type copied struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (c *copied) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *copied) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if len(c.body) < 8<<20 {
		c.body = append(c.body, b...)
	}
	return c.ResponseWriter.Write(b)
}

func (c *copied) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Conforming reports each response of h that is not as the description says.
func Conforming(t testing.TB, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &copied{ResponseWriter: w}
		h.ServeHTTP(c, r)
		if r.Pattern == "" || r.Pattern == "/" || c.status == 0 || r.Context().Err() != nil ||
			rights.Is(r)&rights.Page != 0 {
			return
		}
		d := document()
		response := d.at(d.operation(r.Pattern), "responses", strconv.Itoa(c.status))
		if response == nil {
			t.Errorf("%s: the description lacks the status %d: %.200s", r.Pattern, c.status, c.body)
			return
		}
		for name := range r.URL.Query() {
			known := slices.Contains(d.params(r.Pattern), name) || !strings.HasPrefix(r.URL.Path, "/v1/")
			if c.status == http.StatusOK && !known {
				t.Errorf("%s: the description lacks the parameter %s", r.Pattern, name)
			}
		}
		kind := c.Header().Get("Content-Type")
		if kind == "" {
			kind = http.DetectContentType(c.body) // as net/http does
		}
		media, _, _ := strings.Cut(kind, ";")
		if r.Method == http.MethodHead || len(c.body) == 0 {
			return
		}
		content, _ := d.at(response, "content").(map[string]any)
		if content[media] == nil && media != "multipart/byteranges" {
			t.Errorf("%s: status %d: the description lacks the type %q", r.Pattern, c.status, media)
			return
		}
		if media != "application/json" && media != "application/jsonl" {
			return
		}
		dec := json.NewDecoder(strings.NewReader(string(c.body)))
		dec.UseNumber()
		for dec.More() {
			var v any
			if err := dec.Decode(&v); err != nil {
				return // a stream was cut, or the body is longer than what was kept
			}
			if why := d.misfit(r.Pattern, v, d.at(content[media], "schema")); why != "" {
				t.Errorf("status %d: %s", c.status, why)
				return
			}
		}
	})
}

// Params lists the names of the parameters of the query of a request.
func Params(pattern string) []string { return document().params(pattern) }

// Responses returns the descriptions of responses with an error, by status.
func Responses() map[string]any {
	all, _ := document().at(map[string]any(document()), "components", "responses").(map[string]any)
	return all
}
