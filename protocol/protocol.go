// Package protocol declares everything that crosses a process or enters the
// Raft log: subjects, messages, log entries, the HTTP API's types, and their
// greatest sizes. PROTOCOL.md draws the bytes; golden bytes and fuzz tests stand
// beside each decoder. Every message begins with Version and a Kind.
package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Version is the version of the wire and log formats. Processes of different
// versions refuse each other.
const Version = 4

// The bounds of what crosses a wire; a decoder refuses what exceeds them.
const (
	MaxMessage        = 1 << 30   // a whole message, fragments put together
	MaxTasks          = 1 << 20   // tasks of a round
	MaxVars           = 64        // values that a round reads
	MaxText           = 64 << 10  // an error text
	MaxJSON           = 16 << 20  // a JSON body
	MaxHeartbeatBytes = 4 << 20   // a worker's heartbeat: some 60,000 digests of shards
	BlobChunk         = 256 << 10 // bytes of a blob in one reply
	CommitChunk       = 512<<10 - 4096 - MaxCurve
	MaxProgress       = 3 << 10  // the JSON of a job's progress
	MaxCurve          = 20 << 10 // an encoded learning curve
	MaxRaftState      = 64 << 20 // trainer state beyond this is a blob
)

// Kind is the second byte of every message.
type Kind uint8

// The kinds of messages.
const (
	KindHeartbeat Kind = 1  // worker -> coordinators: I am alive, and what I hold
	KindLead      Kind = 2  // leader -> all: who leads, and since which epoch
	KindSetup     Kind = 3  // leader -> worker: a job and its dataset
	KindValue     Kind = 4  // leader -> worker: one version of a value
	KindRun       Kind = 5  // leader -> worker: compute these tasks
	KindPartial   Kind = 6  // worker -> leader: a node of the reduction tree
	KindResult    Kind = 7  // worker -> leader: the bytes of a collected task
	KindNeed      Kind = 8  // worker -> leader: I lack the job or values for a round
	KindFail      Kind = 9  // worker -> leader: a task cannot be computed
	KindForget    Kind = 10 // leader -> worker: drop what you keep of a job
	KindHold      Kind = 11 // leader -> worker: fetch these shards, as a standby
	KindFragment  Kind = 12 // a part of a message larger than NATS carries
	KindBlobGet   Kind = 13 // request: bytes of a blob
	KindBlobData  Kind = 14 // its reply
	KindReplicate Kind = 15 // leader -> coordinator, request: fetch and sync a blob
	KindReply     Kind = 16 // reply: done, or why not
	// KindCheckpoint, worker -> leader: how far a sub-job is.
	KindCheckpoint Kind = 17
	// KindProbe, leader -> worker: it only shows whether somebody listens.
	KindProbe Kind = 18
	// KindProgress, worker -> leader: the numbers of a sub-job, for people.
	KindProgress Kind = 19
	// KindChunk, leader -> worker: one chunk of a version of a value.
	KindChunk Kind = 20
	// KindBundle, leader -> worker: messages of the kinds above in one.
	KindBundle Kind = 21
)

// ErrMessage is wrapped by every error about the bytes of a message.
var ErrMessage = errors.New("protocol: the message is damaged")

// KindOf returns a message's kind after checking its version.
func KindOf(b []byte) (Kind, error) {
	if len(b) < 2 {
		return 0, fmt.Errorf("%w: it has only %d bytes", ErrMessage, len(b))
	}
	if b[0] != Version {
		return 0, fmt.Errorf("%w: it has protocol version %d, this process has version %d", ErrMessage, b[0], Version)
	}
	return Kind(b[1]), nil
}

var le = binary.LittleEndian

// coder reads or appends the fields of a message, so that one list of fields describes both
// directions. After an error it reads zeros. What it reads shares the memory of the message.
type coder struct {
	b     []byte // with what was appended, or what has not been read
	reads bool
	err   error // of a coder that reads
}

// begin codes what every message begins with.
func (c *coder) begin(k Kind) {
	if !c.reads {
		c.b = append(c.b, Version, byte(k))
		return
	}
	got, err := KindOf(c.b)
	if err == nil && got != k {
		err = fmt.Errorf("%w: it has kind %d, want kind %d", ErrMessage, got, k)
	}
	if err != nil {
		c.b, c.err = nil, err
		return
	}
	c.b = c.b[2:]
}

// fail sets the error of a coder that reads, if there is none yet.
func (c *coder) fail(format string, args ...any) {
	if c.reads && c.err == nil {
		c.b, c.err = nil, fmt.Errorf("%w: %s", ErrMessage, fmt.Sprintf(format, args...))
	}
}

// decode reads a message that is all fields of its method code.
func decode(m interface{ code(c coder) coder }, b []byte) error {
	c := m.code(coder{b: b, reads: true})
	return bounded(m, c.end())
}

// end returns the first error of a coder that reads. It is an error if bytes are left.
func (c *coder) end() error {
	if len(c.b) > 0 {
		c.fail("%d bytes follow the end of the message", len(c.b))
	}
	return c.err
}

// take reads the next n bytes. It returns nil after an error.
func (c *coder) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.short(n)
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

// short fails, since fewer than n bytes are left.
func (c *coder) short(n uint64) {
	c.fail("%d bytes are needed, but only %d are left", n, len(c.b))
}

// numbers codes numbers, each in as many bytes as its type has.
func numbers[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, all ...*T) {
	for _, v := range all {
		n := uint64(*v)
		if !c.reads {
			switch unsafe.Sizeof(*v) {
			case 1:
				c.b = append(c.b, byte(n))
			case 2:
				c.b = le.AppendUint16(c.b, uint16(n))
			case 4:
				c.b = le.AppendUint32(c.b, uint32(n))
			default:
				c.b = le.AppendUint64(c.b, n)
			}
			continue
		}
		switch b := c.take(uint64(unsafe.Sizeof(*v))); len(b) {
		case 0:
			n = 0
		case 1:
			n = uint64(b[0])
		case 2:
			n = uint64(le.Uint16(b))
		case 4:
			n = uint64(le.Uint32(b))
		default:
			n = le.Uint64(b)
		}
		*v = T(n)
	}
}

// count codes a number in four bytes. To read more than limit is an error.
func count[T ~int | ~uint32](c *coder, v *T, limit uint32) {
	n := uint32(*v)
	if numbers(c, &n); !c.reads {
		return
	}
	if n > limit {
		c.fail("want a count of at most %[2]d, got %[1]d", n, limit)
		n = 0
	}
	*v = T(n)
}

// flag codes a byte that is 0 or 1.
func (c *coder) flag(v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	if numbers(c, &b); !c.reads {
		return
	}
	if b > 1 {
		c.fail("want a flag of 0 or 1, got %d", b)
	}
	*v = b == 1
}

// text codes a text behind its length. A field that mostly holds what it held before costs no allocation.
func (c *coder) text(v *string, limit uint32) {
	n := len(*v)
	if !c.reads {
		c.b = append(le.AppendUint32(c.b, uint32(n)), *v...)
		return
	}
	count(c, &n, limit)
	if b := c.take(uint64(n)); string(b) != *v {
		*v = string(b)
	}
}

// bytes codes bytes behind their length.
func (c *coder) bytes(v *[]byte) {
	if !c.reads {
		c.b = append(le.AppendUint64(c.b, uint64(len(*v))), *v...)
		return
	}
	var n uint64
	numbers(c, &n)
	*v = c.take(n)
}

// appendJSON appends a message with a body of JSON.
func appendJSON(dst []byte, k Kind, body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("protocol: a message does not marshal: %v", err))
	}
	c := coder{b: dst}
	c.begin(k)
	return append(c.b, b...)
}

// readJSON reads a message with a body of JSON.
func readJSON(b []byte, k Kind, body any) error {
	c := coder{b: b, reads: true}
	c.begin(k)
	if len(c.b) > MaxJSON {
		c.fail("the JSON has %d bytes, want at most %d", len(c.b), MaxJSON)
	}
	if c.err != nil {
		return c.err
	}
	if err := json.Unmarshal(c.b, body); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}

// The tag bound of a message's field says which values Decode accepts:
//
//	bound:"1..4096"    numbers from 1 to 4096; of a list of numbers, each number
//	bound:"..64"       texts of at most 64 bytes, lists and maps of at most 64 elements
//	bound:"name"       texts that CheckID accepts, and the empty text
//	bound:"digest"     texts of 64 hexadecimal digits; of a list, each text
//	bound:"finite"     floating-point numbers that are neither NaN nor infinite
//	bound:"checked"    types with a method Check; of a list, each element
//	bound:"any"        all values: receivers only compare the value, or count only bytes that exist
//
// Several bounds are separated by spaces. Fields of structs of this package have bounds of their own. PROTOCOL.md has
// a table of all fields, which TestBounds writes.

// Bounds of fields that other packages use as well.
const (
	// MaxCount bounds counts: float64 holds them all.
	MaxCount = 1 << 53
	// MaxBlob is the greatest blob, in bytes.
	MaxBlob = 64 << 30
	// MaxCompute bounds how long a worker says that it computed a task.
	MaxCompute time.Duration = 30 * 24 * time.Hour
	// MaxSlots is the greatest number of tasks that a worker computes at once.
	MaxSlots = 4096
	// MaxShown is the greatest length, in bytes, of what a worker says of its machine: its host and its addresses.
	MaxShown = 256
)

// ErrPanic is wrapped by the error of Read if decoding panicked.
var ErrPanic = errors.New("decoding panicked")

// Read decodes a message and checks the range of each field. The error wraps ErrMessage. If decoding panics, the error
// wraps ErrPanic as well, and its text has the stack.
func Read(m interface{ Decode(b []byte) error }, b []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %v\n%s", ErrMessage, ErrPanic, p, debug.Stack())
		}
	}()
	return m.Decode(b)
}

// checker is a type with the bound "checked".
type checker interface{ Check() error }

// A rule checks a field of a message.
type rule struct {
	path   string // such as Resume.Rounds
	index  []int  // of reflect.Value.FieldByIndex
	bounds string // the tag
	checks []func(reflect.Value) error
}

// rulesOf returns the rules of the fields of a message's type, in order.
var rulesOf = func() func(reflect.Type) []rule {
	var known sync.Map // by type
	return func(t reflect.Type) []rule {
		if rules, ok := known.Load(t); ok {
			return rules.([]rule)
		}
		var rules []rule
		appendRules(&rules, t, "", nil)
		known.Store(t, rules)
		return rules
	}
}()

// appendRules appends the rules of the fields of a struct. A field without a bound panics: TestBounds finds it.
func appendRules(rules *[]rule, t reflect.Type, prefix string, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		path, index := prefix+f.Name, append(at[:len(at):len(at)], i)
		tag := f.Tag.Get("bound")
		if tag == "" && f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == reflect.TypeFor[rule]().PkgPath() {
			appendRules(rules, f.Type, path+".", index)
			continue
		}
		if tag == "" {
			panic(fmt.Sprintf("protocol: the field %s of %v has no bound", path, t))
		}
		r := rule{path: path, index: index, bounds: tag}
		for _, bound := range strings.Fields(tag) {
			if check := checkOf(bound, f.Type); check != nil {
				r.checks = append(r.checks, check)
			}
		}
		*rules = append(*rules, r)
	}
}

// checkOf returns the check of a bound for values of a type; nil: all values are accepted.
func checkOf(bound string, t reflect.Type) func(reflect.Value) error {
	low, high, isRange := strings.Cut(bound, "..")
	switch {
	case bound == "any":
		return nil
	case isRange && low == "":
		most, err := strconv.Atoi(high)
		if err != nil {
			panic(err)
		}
		return func(v reflect.Value) error {
			if v.Len() > most {
				return fmt.Errorf("its length is %d, want at most %d", v.Len(), most)
			}
			return nil
		}
	}
	var one func(v reflect.Value) error
	element := t
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		element = t.Elem()
	}
	switch {
	case isRange:
		one = rangeOf(low, high, element)
	case bound == "name":
		one = func(v reflect.Value) error {
			if v.Len() == 0 {
				return nil
			}
			return CheckID(v.String())
		}
	case bound == "digest":
		one = func(v reflect.Value) error {
			if text := v.String(); len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" {
				return fmt.Errorf("want 64 hexadecimal digits, got %.80q", text)
			}
			return nil
		}
	case bound == "finite":
		one = func(v reflect.Value) error {
			if x := v.Float(); x-x != 0 {
				return fmt.Errorf("%v is not a finite number", x)
			}
			return nil
		}
	case bound == "checked":
		one = func(v reflect.Value) error {
			if v.Kind() == reflect.Pointer && v.IsNil() {
				return errors.New("it is missing")
			}
			return v.Interface().(checker).Check()
		}
	default:
		panic(fmt.Sprintf("protocol: unknown bound %q", bound))
	}
	if element == t {
		return one
	}
	return func(v reflect.Value) error {
		for i := range v.Len() {
			if err := one(v.Index(i)); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
}

// rangeOf returns the check of numbers of a type from low to high. If the type is a struct, it checks each of its
// numbers.
func rangeOf(low, high string, t reflect.Type) func(reflect.Value) error {
	switch t.Kind() {
	case reflect.Struct:
		var fields []func(reflect.Value) error
		for i := range t.NumField() {
			fields = append(fields, rangeOf(low, high, t.Field(i).Type))
		}
		return func(v reflect.Value) error {
			for i, check := range fields {
				if err := check(v.Field(i)); err != nil {
					return fmt.Errorf("%s: %w", t.Field(i).Name, err)
				}
			}
			return nil
		}
	case reflect.Float64:
		least, most := number(low, strconv.ParseFloat), number(high, strconv.ParseFloat)
		return func(v reflect.Value) error {
			if x := v.Float(); !(x >= least && x <= most) {
				return fmt.Errorf("want a number from %s to %s, got %v", low, high, x)
			}
			return nil
		}
	case reflect.Int, reflect.Int64:
		parse := func(text string, bits int) (int64, error) { return strconv.ParseInt(text, 10, bits) }
		least, most := number(low, parse), number(high, parse)
		return func(v reflect.Value) error {
			if n := v.Int(); n < least || n > most {
				return fmt.Errorf("want a number from %s to %s, got %d", low, high, n)
			}
			return nil
		}
	}
	parse := func(text string, bits int) (uint64, error) { return strconv.ParseUint(text, 10, bits) }
	least, most := number(low, parse), number(high, parse)
	return func(v reflect.Value) error {
		if n := v.Uint(); n < least || n > most {
			return fmt.Errorf("want a number from %s to %s, got %d", low, high, n)
		}
		return nil
	}
}

// number parses a number of a tag.
func number[T any](text string, parse func(string, int) (T, error)) T {
	n, err := parse(text, 64)
	if err != nil {
		panic(fmt.Sprintf("protocol: %q in a bound is not a number of its field", text))
	}
	return n
}

// bounded returns err, or an error that wraps ErrMessage if a field of m, a pointer to a message, is out of its bound.
func bounded(m any, err error) error {
	if err != nil {
		return err
	}
	v := reflect.ValueOf(m).Elem()
	rules := rulesOf(v.Type())
	for i := range rules {
		r := &rules[i]
		for _, check := range r.checks {
			if err := check(v.FieldByIndex(r.index)); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrMessage, r.path, err)
			}
		}
	}
	return nil
}
