package param

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// config has a field of every kind, and of each that differs between presets.
type config struct {
	Preset string
	Trees  int
	Steps  int
	Rate   float64
	Bias   bool
	Init   string
	Tried  string
}

var table = Table[config]{
	Word("preset", "which defaults", func(c *config) *string { return &c.Preset }, "auto", "paper"),
	Int("trees", "trees", 1, 1000, 5, func(c *config) *int { return &c.Trees }),
	Int("steps", "steps", 0, 1<<40, 0, func(c *config) *int { return &c.Steps }).Preset("paper", 10_000),
	Float("rate", "rate", 1e-12, 1e6, 1e-5, func(c *config) *float64 { return &c.Rate }).Preset("paper", 0.1),
	Bool("bias", "bias", true, func(c *config) *bool { return &c.Bias }).Preset("paper", false),
	Word("init", "init", func(c *config) *string {
		return &c.Init
	}, "xavier", "normal", "zero").Preset("auto", "normal").Says("as the data say"),
	Text("tried", "tried", "all, or a number", "all", checkTried, func(c *config) *string { return &c.Tried }),
}

// TestNotWritten: a preset that is not written has the JSON form of what it selects, in which it
// is unknown.
func TestNotWritten(t *testing.T) {
	short := Table[config]{
		Word("preset", "which defaults", func(c *config) *string { return &c.Preset }, "paper", "auto").NotWritten(),
		Int("trees", "trees", 1, 1000, 5, func(c *config) *int { return &c.Trees }).Preset("auto", 20),
	}
	for preset, want := range map[string]string{"": `{"trees":5}`, "paper": `{"trees":5}`, "auto": `{"trees":20}`} {
		given := Values{"preset": preset}
		if preset == "" {
			given = nil
		}
		c := new(config)
		if err := short.Fill(c, given, "x"); err != nil {
			t.Fatal(err)
		}
		raw, err := short.JSON(c)
		if err != nil || string(raw) != want || short.Check(c) != nil {
			t.Errorf("%q: %s, error %v, want %s", preset, raw, err, want)
		}
		if back, err := short.Parse(raw); err != nil || back.Trees != c.Trees || short.Values(back).Has("preset") {
			t.Errorf("%s is read as %+v, error %v", raw, back, err)
		}
	}
	if err := short.Fill(new(config), Values{"preset": "best"}, "x"); err == nil {
		t.Error("an unknown preset was taken")
	}
	if _, err := short.Parse([]byte(`{"preset":"auto","trees":5}`)); err == nil {
		t.Error("the JSON form has a preset")
	}
}

// checkJSON checks the JSON form of given settings, that it is read as they are, and that all of them, given again, are
// the same settings.
func checkJSON(t *testing.T, of Table[config], forms map[string]Values) {
	t.Helper()
	for want, given := range forms {
		c := new(config)
		if err := of.Fill(c, given, "x"); err != nil {
			t.Fatal(err)
		}
		raw, err := of.JSON(c)
		if err != nil || string(raw) != want {
			t.Errorf("%v: %s, error %v, want %s", given, raw, err, want)
		}
		if back, err := of.Parse(raw); err != nil || *back != *c {
			t.Errorf("%s is read as %+v, error %v", raw, back, err)
		}
		var again config
		if err := of.Fill(&again, of.Values(c), "x"); err != nil || again != *c {
			t.Errorf("%+v, given again, is %+v, error %v", c, again, err)
		}
	}
}

// TestLeftOut: a setting that is left out of a preset's JSON form is there where it has another value than the
// preset's, and with every other preset.
func TestLeftOut(t *testing.T) {
	since := Table[config]{
		Word("preset", "which defaults", func(c *config) *string { return &c.Preset }, "auto", "paper"),
		Bool("bias", "bias", true, func(c *config) *bool { return &c.Bias }).Preset("paper", false).LeftOut("paper"),
		Int("trees", "trees", 1, 1000, 5, func(c *config) *int { return &c.Trees }),
	}
	checkJSON(t, since, map[string]Values{
		`{"preset":"auto","bias":true,"trees":5}`:  nil,
		`{"preset":"auto","bias":false,"trees":5}`: {"bias": false},
		`{"preset":"paper","trees":5}`:             {"preset": "paper"},
		`{"preset":"paper","bias":true,"trees":5}`: {"preset": "paper", "bias": true},
	})
	for bad, want := range map[string]string{
		`{"preset":"auto","trees":5}`:                "bias is missing",
		`{"preset":"paper","bias":false,"trees":5}`:  "bias: the default value false must be omitted",
		`{"bias":false,"preset":"paper"}`:            "bias: the default value false must be omitted",
		`{"preset":"paper"}`:                         "trees is missing",
		`{"preset":"paper","bias":null,"trees":5}`:   "the value is null",
		`{"preset":"paper","bias":"true","trees":5}`: "cannot unmarshal",
	} {
		if _, err := since.Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", bad, err, want)
		}
	}
}

// TestDefaultLeftOut: a setting whose default is left out is in the JSON form where it has another value.
func TestDefaultLeftOut(t *testing.T) {
	since := Table[config]{
		Int("trees", "trees", 1, 1000, 5, func(c *config) *int { return &c.Trees }),
		Bool("bias", "bias", true, func(c *config) *bool { return &c.Bias }).DefaultLeftOut(),
	}
	checkJSON(t, since, map[string]Values{`{"trees":5}`: nil, `{"trees":6}`: {"bias": true, "trees": int64(6)},
		`{"trees":5,"bias":false}`: {"bias": false}})
	if _, err := since.Parse([]byte(`{"trees":5,"bias":true}`)); err == nil ||
		err.Error() != "bias: the default value true must be omitted" {
		t.Errorf("error %v", err)
	}
}

func checkTried(text string) error {
	if text == "all" || strings.Trim(text, "0123456789") == "" {
		return nil
	}
	return errors.New("want all, or a number")
}

// TestDefaults: each preset has its own, and the texts tell of both.
func TestDefaults(t *testing.T) {
	auto := config{Preset: "auto", Trees: 5, Steps: 0, Rate: 1e-5, Bias: true, Init: "normal", Tried: "all"}
	if got := *table.Default(); got != auto {
		t.Errorf("%+v, want %+v", got, auto)
	}
	for _, x := range []struct {
		given Values
		want  config
	}{
		{nil, auto},
		{Values{"preset": "paper"}, config{Preset: "paper", Trees: 5, Steps: 10_000, Rate: 0.1, Bias: false, Init: "xavier",
			Tried: "all"}},
		{Values{"preset": "paper", "bias": true, "steps": int64(7)}, config{Preset: "paper", Trees: 5, Steps: 7, Rate: 0.1,
			Bias: true, Init: "xavier", Tried: "all"}},
	} {
		var c config
		if err := table.Fill(&c, x.given, "x"); err != nil || c != x.want {
			t.Errorf("%v: %+v, error %v, want %+v", x.given, c, err, x.want)
		}
	}
	want := []string{"auto", "5", "auto: 0; paper: 10000", "auto: 1e-5; paper: 0.1", "auto: true; paper: false",
		"as the data say", "all"}
	for i, p := range table.Params() {
		if p.Default != want[i] {
			t.Errorf("%s: default %q, want %q", p.Name, p.Default, want[i])
		}
	}
}

// TestFillRefuses what is given of another type, or not a setting.
func TestFillRefuses(t *testing.T) {
	for want, given := range map[string]Values{
		"trees: a float64 is not a whole number from 1 to 1000":    {"trees": 5.0},
		"rate: a int is not a number from 1e-12 to 1e6":            {"rate": int64(1)},
		"bias: a string is not true or false":                      {"bias": "true"},
		"init: a bool is not xavier, normal or zero":               {"init": true},
		"tried: a int is not all, or a number":                     {"tried": int64(5)},
		`preset: "best" is not auto or paper`:                      {"preset": "best"},
		"depth: x has no such setting":                             {"depth": int64(5), "zeal": 1.0},
		"preset: a int is not auto or paper":                       {"preset": int64(1)},
		"steps: a []uint8 is not a whole number from 0 to 1099511": {"steps": []byte{}},
	} {
		var c config
		var e *Error
		if err := table.Fill(&c, given, "x"); !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: error %v, want %s", given, err, want)
		}
	}
}

// TestCheckAndParse: a value is refused with the same words in a text and in a field.
func TestCheckAndParse(t *testing.T) {
	for _, x := range []struct{ name, text, want string }{
		{"trees", "0", "a whole number from 1 to 1000"},
		{"trees", "1001", "a whole number from 1 to 1000"},
		{"trees", "5.0", "a whole number from 1 to 1000"},
		{"rate", "0", "a number from 1e-12 to 1e6"},
		{"rate", "0x1p-2", "a number from 1e-12 to 1e6"},
		{"rate", "1_0", "a number from 1e-12 to 1e6"},
		{"rate", "NaN", "a number from 1e-12 to 1e6"},
		{"rate", "Inf", "a number from 1e-12 to 1e6"},
		{"rate", "2e6", "a number from 1e-12 to 1e6"},
		{"bias", "yes", "true or false"},
		{"init", "Normal", "xavier, normal or zero"},
	} {
		p := table.find(x.name).Param()
		want := fmt.Sprintf("%s: %q is not %s", x.name, x.text, x.want)
		if _, err := p.Parse(x.text); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := table.find("tried").Param().Parse("no"); err == nil ||
		err.Error() != `tried: "no": want all, or a number` {
		t.Errorf("a text: error %v", err)
	}
	for want, change := range map[string]func(*config){
		"trees: 0 is not a whole number from 1 to 1000": func(c *config) { c.Trees = 0 },
		"rate: NaN is not a number from 1e-12 to 1e6":   func(c *config) { c.Rate = math.NaN() },
		`init: "no" is not xavier, normal or zero`:      func(c *config) { c.Init = "no" },
		`tried: "no": want all, or a number`:            func(c *config) { c.Tried = "no" },
	} {
		c := table.Default()
		change(c)
		if err := table.Check(c); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestParsedTextsAreValues: what Parse takes, Fill takes.
func TestParsedTextsAreValues(t *testing.T) {
	given := Values{}
	for name, text := range map[string]string{"preset": "paper", "trees": "7", "rate": "1e-3", "bias": "true",
		"init": "zero", "tried": "12"} {
		v, err := table.find(name).Param().Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		given[name] = v
	}
	var c config
	if err := table.Fill(&c, given, "x"); err != nil ||
		c != (config{Preset: "paper", Trees: 7, Steps: 10_000, Rate: 1e-3, Bias: true, Init: "zero", Tried: "12"}) {
		t.Errorf("%+v, error %v", c, err)
	}
}

// TestWanted says what would be right for each kind.
func TestWanted(t *testing.T) {
	for want, p := range map[string]Param{
		"a number from 0 to below 1": {Kind: KindFloat, Max: math.Nextafter(1, 0)},
		"one":                        {Kind: KindWord, Words: []string{"one"}},
		"a text":                     {Kind: KindText},
	} {
		if got := p.Wanted(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestJSONIsThatOfAStruct: the JSON form has the bytes that encoding/json gives a struct with
// the same fields in the same order.
func TestJSONIsThatOfAStruct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config{
			Preset: "paper", Trees: rapid.IntRange(1, 1000).Draw(t, "trees"), Steps: rapid.IntRange(0, 1<<40).Draw(t, "steps"),
			Rate: rapid.Float64Range(1e-12, 1e6).Draw(t, "rate"), Bias: rapid.Bool().Draw(t, "bias"), Init: "zero", Tried: "12",
		}
		want, err := json.Marshal(struct {
			Preset string  `json:"preset"`
			Trees  int     `json:"trees"`
			Steps  int     `json:"steps"`
			Rate   float64 `json:"rate"`
			Bias   bool    `json:"bias"`
			Init   string  `json:"init"`
			Tried  string  `json:"tried"`
		}(c))
		if err != nil {
			t.Fatal(err)
		}
		got, err := table.JSON(&c)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s, error %v, want %s", got, err, want)
		}
		if back, err := table.Parse(got); err != nil || *back != c {
			t.Fatalf("%s is read as %+v, error %v", got, back, err)
		}
		var again config
		if err := table.Fill(&again, table.Values(&c), "x"); err != nil || again != c {
			t.Fatalf("%+v, given again, is %+v, error %v", c, again, err)
		}
	})
	c := table.Default()
	c.Rate = math.Inf(1)
	if _, err := table.JSON(c); err == nil {
		t.Error("an infinite rate has a JSON form")
	}
}

// TestParseIsStrict: a setting that is missing, unknown, there twice, null, of another type or
// out of its range.
func TestParseIsStrict(t *testing.T) {
	raw, err := table.JSON(table.Default())
	if err != nil {
		t.Fatal(err)
	}
	good := string(raw)
	for want, bad := range map[string]string{
		"not a JSON object":                  "[]",
		"EOF":                                good[:len(good)-1],
		"follows":                            good + "{}",
		"trees is missing":                   strings.Replace(good, `"trees":5,`, "", 1),
		`"forest" is unknown`:                strings.Replace(good, "trees", "forest", 1),
		`"Trees" is unknown`:                 strings.Replace(good, "trees", "Trees", 1),
		`"trees" is unknown or occurs twice`: strings.Replace(good, `"trees":5,`, `"trees":5,"trees":5,`, 1),
		"trees: the value is null":           strings.Replace(good, `"trees":5,`, `"trees":null,`, 1),
		"cannot unmarshal":                   strings.Replace(good, `"trees":5,`, `"trees":"5",`, 1),
		"trees: 5000 is not a":               strings.Replace(good, `"trees":5,`, `"trees":5000,`, 1),
	} {
		if _, err := table.Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", bad, err, want)
		}
	}
	spaced := strings.ReplaceAll(good, ",", " ,\n")
	if c, err := table.Parse([]byte(spaced)); err != nil || *c != *table.Default() {
		t.Errorf("with spaces: %+v, error %v", c, err)
	}
}

// FuzzParse: any bytes are settings, whose JSON form is read as the same ones, or an error;
// memory follows the length.
func FuzzParse(f *testing.F) {
	raw, err := table.JSON(table.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(raw))
	f.Add([]byte(`{"trees":1e3,"trees":[[[`))
	f.Add([]byte(`{"a":{},"b":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var c *config
		var err error
		allocs.AtMost(t, 64*len(raw)+64<<10, "settings", func() { c, err = table.Parse(raw) })
		if err != nil {
			return
		}
		again, err := table.JSON(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := table.Parse(again); err != nil || *back != *c {
			t.Fatalf("%s is read as %+v, error %v", again, back, err)
		}
	})
}

// FuzzText: no text makes Parse panic, and a number that it takes is in its range.
func FuzzText(f *testing.F) {
	for i, text := range []string{"auto", "5", "7", "1e-3", "true", "zero", "12"} {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		s := table[int(which)%len(table)]
		v, err := s.Param().Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Name != s.Param().Name {
				t.Fatalf("error %v", err)
			}
			return
		}
		c := table.Default()
		if err := s.set(c, v); err != nil {
			t.Fatal(err)
		}
		if err := table.Check(c); err != nil {
			t.Fatal(err)
		}
	})
}
