// Package openapi describes the HTTP API in the format OpenAPI 3.1. The description follows from package rights, which
// has the requests, from the Go types of their bodies, and from the parameters that the handlers read.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// statuses are the meanings of the statuses of errors.
var statuses = map[int]string{
	http.StatusNotModified:                  "the client has the bytes with this ETag already",
	http.StatusBadRequest:                   "the request is invalid",
	http.StatusUnauthorized:                 "the caller has no identity, or the token is not valid",
	http.StatusForbidden:                    "the caller lacks the role, does not own it, or would exceed a quota",
	http.StatusNotFound:                     "something does not exist, or the caller may not read it",
	http.StatusRequestTimeout:               "the request body arrives too slowly",
	http.StatusConflict:                     "the request conflicts with the state of the cluster",
	http.StatusGone:                         "the certificate is of a coordinator that was removed",
	http.StatusRequestedRangeNotSatisfiable: "the range of the request begins after the end",
	http.StatusMisdirectedRequest:           "without TLS: the request is for another host",
	protocol.StatusSendBlob:                 "a blob must be sent first, perhaps again",
	http.StatusInternalServerError:          "internal error of the coordinator",
	http.StatusServiceUnavailable:           "no leader, no quorum, or too many requests: send it again later",
	http.StatusInsufficientStorage:          "the disk is nearly full, or the request would exceed the quota of blobs",
}

// requests describes all requests by path and method, and the types of their bodies.
func requests() (paths map[string]object, s *schemas) {
	s = &schemas{named: object{}, types: make(map[string]reflect.Type)}
	paths = make(map[string]object)
	for i := range rights.Requests {
		r := &rights.Requests[i]
		if r.Kind&rights.Page != 0 {
			continue
		}
		method, _, _ := strings.Cut(r.Pattern, " ")
		path := pathOf(r.Pattern)
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(method)] = s.operation(r, find(r.Pattern))
	}
	s.of(reflect.TypeFor[protocol.Problem]())
	s.strict()
	s.describe()
	return paths, s
}

// Document returns the description of the API. prefix is the path below which a proxy has the API, or empty.
func Document(prefix string) []byte {
	paths, s := requests()
	responses := object{}
	for status, meaning := range statuses {
		response := object{"description": meaning}
		switch status {
		case http.StatusNotModified:
		case http.StatusRequestedRangeNotSatisfiable:
			response["content"] = object{mediaText: object{"schema": object{"type": "string"}}}
		default:
			response["content"] = object{mediaJSON: object{"schema": object{"$ref": "#/components/schemas/Problem"}}}
		}
		responses[strconv.Itoa(status)] = response
	}
	if prefix == "" {
		prefix = "/"
	}
	b, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Coppice", "version": version.String, "summary": "Training of label-distribution-learning models",
			"description": "The HTTP API, version 1. Integers have up to 64 bits and are JSON numbers. Clients must ignore " +
				"unknown keys in responses. An error is a Problem. Every request may be sent more than once.",
			"license": object{"name": "see the repository"},
		},
		"servers":      []any{object{"url": prefix}},
		"externalDocs": object{"url": "https://github.com/coppice-ldl/coppice/blob/main/docs/reference/http.md"},
		"security":     []any{object{"token": []any{}}, object{"certificate": []any{}}, object{}},
		"tags":         tags(),
		"paths":        paths,
		"components": object{"schemas": s.named, "responses": responses, "securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer", "description": "a token of a user, on clusters with TLS"},
			"certificate": object{"type": "mutualTLS",
				"description": "a certificate of a user or a process, on clusters with TLS"},
		}},
	}, "", " ")
	if err != nil {
		panic(err) // a value without JSON; TestDocument finds it
	}
	return append(b, '\n')
}

// pathOf returns the path of a pattern as OpenAPI writes it. A path has one parameter of a name for all methods.
func pathOf(pattern string) string {
	_, path, _ := strings.Cut(strings.ReplaceAll(pattern, "...}", "}"), " ")
	if strings.HasPrefix(path, "/v1/models/") {
		return "/v1/models/{name}"
	}
	return path
}

// tagOf returns the resource of a path.
func tagOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1/"); ok {
		first, _, _ := strings.Cut(rest, "/")
		return first
	}
	return "process"
}

// tags lists the tags of all requests.
func tags() (list []any) {
	found := make(map[string]bool)
	for _, r := range rights.Requests {
		if r.Kind&rights.Page == 0 {
			found[tagOf(pathOf(r.Pattern))] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, object{"name": name})
	}
	return list
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain returns a purpose of package rights without links.
func plain(purpose string) string {
	purpose = strings.ReplaceAll(purpose, ", see [below]", " [see the reference]")
	return link.ReplaceAllString(purpose, "$1")
}

// operation describes a request.
func (s *schemas) operation(r *rights.Request, o *operation) object {
	path := pathOf(r.Pattern)
	described := object{"operationId": o.id, "tags": []string{tagOf(path)}, "description": plain(r.Purpose),
		"summary": strings.ToUpper(o.id[:1]) + spaced(o.id[1:]), "x-role": string(r.Role)}
	if r.Role == rights.Anonymous {
		described["security"] = []any{object{}}
	}
	var params []any
	for _, name := range pathParams(path) {
		p := object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"},
			"description": pathTexts[name]}
		if value := o.example.Path[name]; value != "" {
			p["example"] = value
		}
		params = append(params, p)
	}
	for i := range o.params {
		params = append(params, s.param(&o.params[i], o))
	}
	if params != nil {
		described["parameters"] = params
	}
	switch {
	case o.in != nil:
		schema := s.of(reflect.TypeOf(o.in))
		if len(o.optional) > 0 {
			schema = s.without(reflect.TypeOf(o.in), o.optional)
		}
		content := object{"schema": schema}
		if o.example.Body != nil {
			content["example"] = o.example.Body
		}
		described["requestBody"] = object{"required": true, "content": object{mediaJSON: content}}
	case o.bytes:
		described["requestBody"] = object{"required": true, "content": object{mediaBytes: object{"schema": object{
			"type": "string", "format": "binary"}}}}
	}
	described["responses"] = s.responses(r, o)
	return described
}

// responses describes the responses of a request.
func (s *schemas) responses(r *rights.Request, o *operation) object {
	all := object{}
	success := object{"description": "success"}
	content := object{}
	for _, media := range o.media() {
		schema := object{"type": "string"}
		switch {
		case media == mediaBytes:
			schema["format"] = "binary"
		case (media == mediaJSON || media == mediaLines) && o.out != nil:
			schema = s.of(reflect.TypeOf(o.out))
		case media == mediaJSON:
			schema = object{}
		}
		content[media] = object{"schema": schema}
	}
	success["content"] = content
	if o.linked {
		success["headers"] = object{"Link": object{"schema": object{"type": "string"},
			"description": "if more elements follow: the request for them, with rel=\"next\" (RFC 8288)"}}
	}
	all["200"] = success
	if o.ranges {
		all["206"] = object{"description": "a part of the bytes, for a request with the header Range",
			"content": content}
	}
	for _, status := range statusesOf(r, o) {
		all[strconv.Itoa(status)] = object{"$ref": fmt.Sprintf("#/components/responses/%d", status)}
	}
	if r.Pattern == "GET /readyz" { // its reason is a text; too many requests are a Problem
		all["503"] = object{"description": "the coordinator is not ready, and why", "content": object{
			mediaText: object{"schema": object{"type": "string"}},
			mediaJSON: object{"schema": s.of(reflect.TypeFor[protocol.Problem]())}}}
	}
	return all
}

// statusesOf lists the statuses of the errors of a request.
func statusesOf(r *rights.Request, o *operation) []int {
	list := append([]int{http.StatusMisdirectedRequest, http.StatusInternalServerError, http.StatusServiceUnavailable},
		o.statuses...)
	if r.Role != rights.Anonymous {
		list = append(list, http.StatusUnauthorized, http.StatusForbidden)
	}
	if r.Others[rights.Coordinator] != rights.None {
		list = append(list, http.StatusGone)
	}
	if o.params != nil || o.in != nil || o.bytes {
		list = append(list, http.StatusBadRequest)
	}
	if o.in != nil || o.bytes {
		list = append(list, http.StatusRequestTimeout)
	}
	if pathParams(pathOf(r.Pattern)) != nil {
		list = append(list, http.StatusBadRequest, http.StatusNotFound)
	}
	if r.Kind&rights.Changes != 0 {
		list = append(list, http.StatusConflict, http.StatusNotFound)
	}
	if o.ranges {
		list = append(list, http.StatusNotModified, http.StatusRequestedRangeNotSatisfiable)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// param describes a parameter of a query.
func (s *schemas) param(p *protocol.Param, o *operation) object {
	t := reflect.TypeOf(p.Into).Elem()
	schema := s.of(t)
	described := object{"name": p.Name, "in": "query", "schema": schema}
	if p.Want != "" {
		described["description"] = p.Want
	}
	if t.Kind() == reflect.Slice {
		described["style"], described["explode"] = "form", false
	}
	schema = maps.Clone(schema)
	described["schema"] = schema
	if p.Least != nil {
		schema["minimum"] = *p.Least
	}
	if p.Most != nil {
		schema["maximum"] = *p.Most
	}
	if p.OneOf != nil {
		values := slices.Clone(p.OneOf)
		for _, v := range p.OneOf {
			if p.Descends {
				values = append(values, "-"+v)
			}
		}
		schema["enum"] = values
	}
	if value, ok := o.example.Query[p.Name]; ok {
		described["example"] = value
	}
	return described
}

// without returns the schema of a struct with some of its keys not required.
func (s *schemas) without(t reflect.Type, optional []string) object {
	schema := s.fields(t)
	required := slices.DeleteFunc(schema["required"].([]string), func(key string) bool {
		return slices.Contains(optional, key)
	})
	schema["required"] = required
	name := t.Name() + "Request"
	s.named[name] = schema
	return object{"$ref": "#/components/schemas/" + name}
}

// strict forbids unknown keys in the bodies of requests, which a coordinator refuses. Schemas that responses have too
// stay open: later versions may add keys.
func (s *schemas) strict() {
	requests, responses := make(map[string]bool), make(map[string]bool)
	for _, o := range operations() {
		if o.in != nil {
			name := reflect.TypeOf(o.in).Name()
			if len(o.optional) > 0 {
				name += "Request"
			}
			s.reach(object{"$ref": "#/components/schemas/" + name}, requests)
		}
		if o.out != nil {
			s.reach(s.of(reflect.TypeOf(o.out)), responses)
		}
	}
	for name := range requests {
		if schema := s.named[name].(object); !responses[name] && schema["properties"] != nil {
			schema["additionalProperties"] = false
		}
	}
}

// reach adds the names of the schemas to which a schema refers.
func (s *schemas) reach(schema any, found map[string]bool) {
	switch v := schema.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/components/schemas/")
			if !found[name] && s.named[name] != nil {
				found[name] = true
				s.reach(s.named[name], found)
			}
		}
		for _, part := range v {
			s.reach(part, found)
		}
	case []any:
		for _, part := range v {
			s.reach(part, found)
		}
	}
}

var braces = regexp.MustCompile(`\{([a-z]+)\}`)

// pathParams lists the parameters of a path.
func pathParams(path string) (list []string) {
	for _, m := range braces.FindAllStringSubmatch(path, -1) {
		list = append(list, m[1])
	}
	return list
}

var pathTexts = map[string]string{
	"id": "id of a coordinator or a token", "worker": "id of a worker",
	"digest": "SHA-256 of the bytes in hexadecimal digits",
	"job":    "number or name of a job",
	"name":   "name of a dataset, an experiment or a model; a slash in it is written as %2F",
}

// spaced returns a name in words: listJobs is list jobs.
func spaced(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
