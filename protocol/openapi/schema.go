package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/protocol"
)

// object is a JSON object. encoding/json writes its keys in ascending order, so the document has the same bytes always.
type object = map[string]any

// names are the names of schemas that differ from the names of their types.
var names = map[reflect.Type]string{
	reflect.TypeFor[protocol.CellOutcome]():   "RunOutcome",
	reflect.TypeFor[protocol.CellState]():     "RunState",
	reflect.TypeFor[protocol.JobCells]():      "JobRuns",
	reflect.TypeFor[protocol.JobCellStates](): "JobRunStates",
	reflect.TypeFor[protocol.Spec]():          "JobSpec",
	reflect.TypeFor[protocol.RecordEntry]():   "AuditRecords",
	reflect.TypeFor[protocol.MemberEntry]():   "CoordinatorAddresses",
	reflect.TypeFor[round.Job]():              "ResolvedJob",
	reflect.TypeFor[round.Cells]():            "Runs",
	reflect.TypeFor[round.CellRow]():          "RunMethod",
	reflect.TypeFor[round.CellBudget]():       "RunBudget",
	reflect.TypeFor[errtext.Form]():           "ErrorForm",
	reflect.TypeFor[errtext.Part]():           "ErrorPart",
	reflect.TypeFor[curve.Point]():            "CurvePoint",
}

// own are the schemas of types that write their JSON themselves.
var own = map[reflect.Type]object{
	reflect.TypeFor[json.RawMessage](): {"description": "any JSON value"},
	reflect.TypeFor[curve.Point](): {"type": "object", "required": []string{"step"}, "properties": object{
		"step":          object{"type": "integer", "minimum": 0},
		"training_loss": object{"type": "number"}, "validation_loss": object{"type": "number"},
		"seconds": object{"type": "number"},
	}},
	reflect.TypeFor[errtext.Part](): {"description": "a text, or an object for an option, a value or a command",
		"anyOf": []any{object{"type": "string"}, object{"type": "object", "properties": object{
			"option": object{"type": "string"}, "value_of": object{"type": "string"}, "value": object{"type": "string"},
			"key": object{"type": "boolean"}, "command": object{"type": "string"},
		}}}},
}

// words are the values of types that are one of some words.
var words = map[reflect.Type][]string{
	reflect.TypeFor[protocol.JobState]():   texts(protocol.JobStates),
	reflect.TypeFor[protocol.WaitReason](): texts(protocol.WaitReasons()),
	reflect.TypeFor[protocol.IdleReason](): texts(protocol.IdleReasons),
	reflect.TypeFor[protocol.EventKind]():  texts(protocol.EventKinds()),
}

func texts[S ~string](values []S) (list []string) {
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// schemas makes the schemas of Go types as encoding/json writes them, and collects the schemas that have names.
type schemas struct {
	named object
	types map[string]reflect.Type // by name
}

// of returns the schema of a type.
func (s *schemas) of(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	schema, isOwn := own[t]
	if isOwn && (t.Kind() != reflect.Struct) {
		return schema
	}
	if list := words[t]; list != nil {
		return object{"type": "string", "enum": list}
	}
	if !isOwn && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return object{"type": "string"}
	}
	if !isOwn && t.Implements(reflect.TypeFor[json.Marshaler]()) {
		panic(fmt.Sprintf("openapi: %v writes its JSON itself, and has no schema", t))
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "format": "uint64", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		items := s.of(t.Elem())
		if t.Elem().Kind() == reflect.Pointer {
			items = object{"anyOf": []any{items, object{"type": "null"}}}
		}
		return object{"type": "array", "items": items}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.ofStruct(t, schema)
	}
	panic(fmt.Sprintf("openapi: %v has no schema", t))
}

// ofStruct returns a reference to the schema of a struct. schema is its schema if it writes its JSON itself, or nil.
func (s *schemas) ofStruct(t reflect.Type, schema object) object {
	if t.NumField() == 0 {
		return object{"type": "object"}
	}
	name := t.Name()
	if other := names[t]; other != "" {
		name = other
	}
	if s.types[name] != nil && s.types[name] != t {
		panic(fmt.Sprintf("openapi: %v and %v have the same name", t, s.types[name]))
	}
	if s.types[name] == nil {
		s.types[name] = t
		if schema == nil {
			schema = s.fields(t)
		}
		s.named[name] = schema
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// fields returns the schema of an object with the fields of a struct as keys.
func (s *schemas) fields(t reflect.Type) object {
	properties, required := object{}, []string{}
	s.add(t, properties, &required)
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// add adds the fields of a struct, and of the structs that it embeds.
func (s *schemas) add(t reflect.Type, properties object, required *[]string) {
	for field := range t.Fields() {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			s.add(field.Type, properties, required)
			continue
		}
		if !field.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = field.Name
		}
		properties[tag] = s.of(field.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, tag)
		}
	}
}
