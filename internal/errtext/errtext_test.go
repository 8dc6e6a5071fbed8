package errtext

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// A text has its places in JSON, and is spelled with flags by String.
func TestSprintf(t *testing.T) {
	inner := Errorf(WrongOption, "{missing=drop} leaves it out")
	for _, test := range []struct {
		text       Text
		want, json string
	}{
		{"plain", "plain", `["plain"]`},
		{Sprintf("row %d; {missing=drop}, {drop}", 3), "row 3; --missing drop, --drop",
			`["row 3; ",{"option":"missing","value":"drop"},", ",{"option":"drop"}]`},
		{Sprintf("{range=%d:%d}: %s", 5, 1, "{x}"), "--range 5:1: {x}", `[{"option":"range","value":"5:1"},": {x}"]`},
		{Sprintf("{drop=%s}", "a b"), "--drop 'a b'", `[{"option":"drop","value":"a b"}]`},
		{Sprintf("{drop=%s}", "it's"), `--drop 'it'\''s'`, `[{"option":"drop","value":"it's"}]`},
		{Sprintf("not {:true}, {range:0:69}"), "not true, 0:69",
			`["not ",{"value_of":"","value":"true"},", ",{"value_of":"range","value":"0:69"}]`},
		{Sprintf("give it to {coppice dataset import} {{1}}"), "give it to coppice dataset import {1}",
			`["give it to ",{"command":"dataset import"}," {1}"]`},
		{Sprintf("%[2]s, %[1]s", Option("a", ""), Option("b", "1")), "--b 1, --a",
			`[{"option":"b","value":"1"},", ",{"option":"a"}]`},
		{Sprintf("f: %w", inner), "f: --missing drop leaves it out",
			`["f: ",{"option":"missing","value":"drop"}," leaves it out"]`},
		{Sprintf("f: %w", fmt.Errorf("row 1: %w", inner)), "f: row 1: --missing drop leaves it out",
			`["f: row 1: ",{"option":"missing","value":"drop"}," leaves it out"]`},
		{Sprintf("%s", "\x02nset\x1f\x03"), "nset", `["nset"]`},
		{Text("\x02nset"), "nset", `["nset"]`},
		{Sprintf("with {key missing=skip}, {key label-columns}"), "with missing: skip, label_columns",
			`["with ",{"option":"missing","value":"skip","key":true},", ",{"option":"label-columns","key":true}]`},
		{Sprintf("{decimal=,} and {range=0:9}, {drop}").Keys(func(key string) bool {
			return key != "drop"
		}), `decimal: "," and range: 0:9, --drop`,
			`[{"option":"decimal","value":",","key":true}," and ",{"option":"range","value":"0:9","key":true},", ",{"option":"drop"}]`},
	} {
		b, err := json.Marshal(test.text.Parts())
		if got := test.text.String(); got != test.want || string(b) != test.json || err != nil {
			t.Errorf("%q: %s, %s, error %v, want %s, %s", string(test.text), got, b, err, test.want, test.json)
		}
		var back []Part
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, test.text.Parts()) {
			t.Errorf("%s is read as %v, error %v", b, back, err)
		}
	}
}

// The form of an error has the places of what it wraps. A text in which they are not found stays as it is.
func TestOf(t *testing.T) {
	setting := Errorf(WrongSetting, "{set:trees}: %q is not a whole number", "x")
	named := fmt.Errorf("spec.yaml: %w", setting)
	for _, test := range []struct {
		text string
		err  error
		want string
	}{
		{named.Error(), named,
			`{"code":"wrong-setting","text":["spec.yaml: ",{"value_of":"set","value":"trees"},": \"x\" is not a whole number"]}`},
		{setting.Error(), setting,
			`{"code":"wrong-setting","parameter":"trees","text":[{"value_of":"set","value":"trees"},": \"x\" is not a whole number"]}`},
		{"another text", named, `{"code":"wrong-setting","text":["another text"]}`},
		{"plain", errors.New("plain"), `null`},
		{"", nil, `null`},
	} {
		b, err := json.Marshal(Of(test.text, test.err))
		if string(b) != test.want || err != nil {
			t.Errorf("%q: %s, error %v, want %s", test.text, b, err, test.want)
		}
	}
	if !errors.Is(Errorf(WrongData, "%w; %s", named, "more"), setting) {
		t.Error("an error does not wrap its arguments")
	}
	joined := errors.Join(errors.New("first"), setting)
	if f := Of(joined.Error(), joined); f == nil || f.Whole().String() != joined.Error() || len(f.Text) != 3 {
		t.Errorf("joined errors have the form %v", f)
	}
}

// The page of JSON lists all codes.
func TestCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/json.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range Codes() {
		if !strings.Contains(string(page), "\n| `"+string(code)+"` | ") {
			t.Errorf("docs/reference/json.md lacks the code %s", code)
		}
	}
}

// FuzzForm reads forms as a client does: a form that can be read is written in the same way, and its text has no marks.
func FuzzForm(f *testing.F) {
	f.Add(
		[]byte(
			`{"code":"wrong-row","text":["a",{"option":"missing","value":"drop"},{"value_of":"","value":"true"},{"command":"predict"}]}`))
	f.Add(
		[]byte(
			`{"text":["a",{"option":"missing","value":"drop","key":true},{"option":"label-columns","key":true},{"value_of":"range","value":"0:9","key":true}]}`))
	f.Add([]byte(`{"text":["\u0002nset\u001f\u0003",null,{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var form Form
		if json.Unmarshal(b, &form) != nil {
			return
		}
		text := form.Whole()
		if shown := text.String(); clean(shown) != shown {
			t.Errorf("%q has marks", shown)
		}
		if again := NewForm(form.Code, text).Whole(); again != text {
			t.Errorf("%q becomes %q", string(text), string(again))
		}
	})
}
