package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestEveryRequestIsDescribed: each request of package rights has one operation with an id of its own, and no other
// operation exists.
func TestEveryRequestIsDescribed(t *testing.T) {
	var described, wanted, ids []string
	for _, o := range operations() {
		described, ids = append(described, o.pattern), append(ids, o.id)
	}
	for _, r := range rights.Requests {
		if r.Kind&rights.Page == 0 {
			wanted = append(wanted, r.Pattern)
		}
	}
	slices.Sort(described)
	slices.Sort(wanted)
	slices.Sort(ids)
	if !slices.Equal(described, wanted) {
		t.Errorf("described are\n%v\nwant\n%v", strings.Join(described, "\n"), strings.Join(wanted, "\n"))
	}
	if n := len(ids); n != len(slices.Compact(ids)) {
		t.Error("two operations have the same id")
	}
}

// TestDocument: the document has the same bytes each time, describes each path, and each reference in it leads
// somewhere.
func TestDocument(t *testing.T) {
	b := Document("")
	if !bytes.Equal(b, Document("")) {
		t.Error("the document differs the second time")
	}
	if !bytes.Contains(Document("/coppice"), []byte(`"url": "/coppice"`)) {
		t.Error("the prefix is not the URL of the server")
	}
	var document map[string]any
	if err := json.Unmarshal(b, &document); err != nil {
		t.Fatal(err)
	}
	paths := document["paths"].(map[string]any)
	for _, r := range rights.Requests {
		if r.Kind&rights.Page != 0 {
			continue
		}
		method, _, _ := strings.Cut(r.Pattern, " ")
		at, _ := paths[pathOf(r.Pattern)].(map[string]any)
		o, _ := at[strings.ToLower(method)].(map[string]any)
		if o["responses"] == nil || o["operationId"] == "" || strings.Contains(o["description"].(string), "](") {
			t.Errorf("%s: %v", r.Pattern, o)
		}
	}
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				at := any(document)
				for key := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					at, _ = at.(map[string]any)[key]
				}
				if at == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				follow(v[key])
			}
		case []any:
			for _, one := range v {
				follow(one)
			}
		}
	}
	follow(document)
}

// fill sets each field of a value to something that encoding/json does not leave out.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte("1"))
		} else if depth < 6 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth)
		fill(value, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth)
			}
		}
	}
}

// TestSchemasHaveTheKeysOfJSON: the schema of each type has the keys that encoding/json writes of a value in which
// nothing is empty, and requires the keys of an empty value.
func TestSchemasHaveTheKeysOfJSON(t *testing.T) {
	s := &schemas{named: object{}, types: make(map[string]reflect.Type)}
	for _, o := range operations() {
		for _, v := range []any{o.in, o.out} {
			if v != nil {
				s.of(reflect.TypeOf(v))
			}
		}
	}
	s.of(reflect.TypeFor[protocol.Problem]())
	if len(s.types) < 40 {
		t.Errorf("only %d types", len(s.types))
	}
	for name, typ := range s.types {
		schema := s.named[name].(object)
		properties, ok := schema["properties"].(object)
		if !ok {
			continue
		}
		full, empty := reflect.New(typ).Elem(), reflect.New(typ).Elem()
		fill(full, 0)
		keys := func(v reflect.Value) []string {
			b, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var m map[string]json.RawMessage
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return slices.Sorted(maps.Keys(m))
		}
		if got, want := slices.Sorted(maps.Keys(properties)), keys(full); !slices.Equal(got, want) {
			t.Errorf("%s has the keys\n%v, want\n%v", name, got, want)
		}
		required, _ := schema["required"].([]string)
		if _, isOwn := own[typ]; isOwn {
			continue
		}
		if got, want := slices.Sorted(slices.Values(required)), keys(empty); !slices.Equal(got, want) {
			t.Errorf("%s requires\n%v, want\n%v", name, got, want)
		}
	}
}

// TestParametersSayWhatTheyAre: each parameter has a description or values, and a client that leaves all out sends
// nothing.
func TestParametersSayWhatTheyAre(t *testing.T) {
	for _, o := range operations() {
		for _, p := range o.params {
			if p.Want == "" && p.OneOf == nil {
				t.Errorf("%s: parameter %s has no description", o.pattern, p.Name)
			}
		}
		if text := protocol.WriteQuery(o.params); text != "" {
			t.Errorf("%s: parameters are set: %s", o.pattern, text)
		}
		for name := range o.example.Query {
			if !slices.ContainsFunc(o.params, func(p protocol.Param) bool { return p.Name == name }) {
				t.Errorf("%s: the example has the parameter %s", o.pattern, name)
			}
		}
		for _, status := range statusesOf(request(o.pattern), &o) {
			if statuses[status] == "" || http.StatusText(status) == "" {
				t.Errorf("%s: status %d has no meaning", o.pattern, status)
			}
		}
	}
}

// request returns the request of a pattern.
func request(pattern string) *rights.Request {
	i := slices.IndexFunc(rights.Requests, func(r rights.Request) bool { return r.Pattern == pattern })
	return &rights.Requests[i]
}
