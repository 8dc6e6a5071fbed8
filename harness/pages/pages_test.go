package pages_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/spec"
)

// userPage is a Markdown file for users. Its fenced blocks without a language, or with sh or bash, hold
// commands; TestPages runs the blocks of a page in one shell, from top to bottom, and parses specs in YAML.
// Comments of HTML, which readers do not see, say what the test has to know. They stand on lines of their own:
//
//	<!-- not run: REASON -->      the next block is left out, for a reason of three words or more
//	<!-- needs: PROGRAM -->       the next block is left out where the program is not installed
//	<!-- exits CODE -->           a command of the next block ends with this exit code
//	<!-- background -->           servers of the next block, which stay in the foreground, run in the background
//	<!-- file: NAME -->           the next block is the content of a file, which is written here
//	<!-- printed -->              the last block of commands printed every line of the next block
//	<!-- with: NAME NAME ... -->  files that the page takes for given: of madeFiles, or a file of any page
//	<!-- run: COMMANDS -->        commands that the page takes for given, such as "cluster"
//	<!-- run the next list -->    commands in the items of the next list, between backticks, are run as well
type userPage struct {
	name, dir string
	lines     []string
	blocks    []*block
	hidden    map[int]string // line: commands of a comment, or of an item of a list
	with      []string
	ran       int
	done      bool
	left      map[string]int // reason: commands
}

// block is a fenced block.
type block struct {
	first, last int // lines of the fences, from 1
	language    string
	text        []string // without the indentation of the fence
	marks       map[string]string
	ran         bool
}

var (
	fence = regexp.MustCompile("^( *)```(\\w*)$")
	mark  = regexp.MustCompile(
		`^ *<!-- (not run|needs|exits|background|file|printed|with|run the next list|run)(?::? (.*?))? *-->$`)
	inItem     = regexp.MustCompile("`((?:coppice|go) [^`]*)`")
	notRunItem = regexp.MustCompile(`<!-- not run: (.*?) -->$`)
	endpoint   = regexp.MustCompile(`\b(?:host\d|127\.0\.0\.1|localhost):\d{4}\b|\B:7500\b`)
	served     = regexp.MustCompile(`^(coppice (?:coordinator|worker) .*?)( *#.*)?$`)
	document   = regexp.MustCompile(`(?:<<'?)(\w+)'?$`)
	rule       = regexp.MustCompile(`^-{4,}$`)
	// of blocks that are no commands; python/tests/test_docs.py runs Python
	languages = []string{"text", "yaml", "json", "promql", "go", "python"}
)

// readPage finds the blocks and marks of a page.
func readPage(t *testing.T, name string) *userPage {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	p := &userPage{name: name, lines: strings.Split(string(b), "\n"), hidden: make(map[int]string),
		left: make(map[string]int)}
	marks, list := make(map[string]string), false
	for i := 0; i < len(p.lines); i++ {
		line := p.lines[i]
		if m := mark.FindStringSubmatch(line); m != nil {
			switch m[1] {
			case "with":
				p.with = append(p.with, strings.Fields(m[2])...)
			case "run":
				p.hidden[i+1] = m[2]
			case "run the next list":
				list = true
			default:
				marks[m[1]] = m[2]
			}
			continue
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			b := &block{first: i + 1, language: m[2], marks: marks}
			for i++; i < len(p.lines) && strings.TrimSpace(p.lines[i]) != "```"; i++ {
				b.text = append(b.text, strings.TrimPrefix(p.lines[i], m[1]))
			}
			if b.last = i + 1; i == len(p.lines) {
				t.Fatalf("%s:%d: the block has no end", name, b.first)
			}
			p.blocks, marks = append(p.blocks, b), make(map[string]string)
		}
		if strings.TrimSpace(line) != "" && len(marks) > 0 {
			t.Errorf("%s:%d: a mark %v is not followed by a block", name, i+1, slices.Collect(maps.Keys(marks)))
			marks = make(map[string]string)
		}
		if list && strings.HasPrefix(line, "- ") {
			p.item(i + 1)
		} else if list && strings.TrimSpace(line) != "" {
			list = false
		}
	}
	return p
}

// item adds the commands of an item of a list. A mark at the end of the item says why they do not run.
func (p *userPage) item(line int) {
	var all []string
	for _, m := range inItem.FindAllStringSubmatch(p.lines[line-1], -1) {
		all = append(all, m[1])
	}
	if m := notRunItem.FindStringSubmatch(p.lines[line-1]); m != nil {
		p.left[m[1]] += len(all)
		return
	}
	p.ran += len(all)
	if len(all) > 0 {
		p.hidden[line] = strings.Join(all, "; ")
	}
}

// shell reports whether a block holds commands.
func (b *block) shell() bool {
	return b.language == "" && b.marks["file"] == "" || b.language == "sh" || b.language == "bash"
}

// commands counts the commands of a block by the lines on which one begins.
func (b *block) commands() (n int) {
	end, quoted, continued := "", false, false
	for _, line := range b.text {
		if end != "" {
			if line == end {
				end = ""
			}
			continue
		}
		if !quoted && !continued && line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
		quoted = quoted != (strings.Count(line, `"`)%2 == 1)
		continued = strings.HasSuffix(line, `\`)
		if m := document.FindStringSubmatch(line); m != nil {
			end = m[1]
		}
	}
	return n
}

// script writes the script of a page: each command stands in the line that it has on the page, so that
// bash's line numbers are right.
func (p *userPage) script(t *testing.T, addresses map[string]string) string {
	t.Helper()
	out := make([]string, len(p.lines))
	for line, commands := range p.hidden {
		out[line-1] = fmt.Sprintf("begin %d; %s; end $?", line, commands)
	}
	for _, b := range p.blocks {
		where := fmt.Sprintf("%s:%d", p.name, b.first)
		reason, left := b.marks["not run"]
		if program := b.marks["needs"]; program != "" {
			if _, err := exec.LookPath(program); err != nil {
				reason, left = program+" is not installed here", true
			}
		}
		switch {
		case b.marks["file"] != "":
			out[b.first-1] = fmt.Sprintf("cat > '%s' <<'END OF BLOCK'", b.marks["file"])
			copy(out[b.first:], b.text)
			out[b.last-1] = "END OF BLOCK"
		case b.language == "yaml":
			if err := parseSpec(where, strings.Join(b.text, "\n")); err != nil {
				t.Error(err)
			}
		case !b.shell() && !slices.Contains(languages, b.language):
			t.Errorf("%s: a block of language %q: want commands without a language, or one of %q", where, b.language, languages)
		case !b.shell():
		case left && len(strings.Fields(reason)) < 3:
			t.Errorf("%s: the reason %q for a block that is not run has fewer than three words", where, reason)
		case left:
			p.left[reason] += b.commands()
		default:
			p.ran, b.ran = p.ran+b.commands(), true
			out[b.first-1] = fmt.Sprintf("begin %d %s", b.first, b.marks["exits"])
			copy(out[b.first:], b.text)
			if _, ok := b.marks["background"]; ok {
				for i := range b.text {
					out[b.first+i] = served.ReplaceAllString(b.text[i], "$1 &")
				}
			}
			out[b.last-1] = "end $?"
		}
	}
	return endpoint.ReplaceAllStringFunc(strings.ReplaceAll(strings.Join(out, "\n"), "/var/", "$PWD/var/"),
		func(at string) string {
			return addresses[at]
		})
}

// parseSpec parses a block of YAML that is a whole spec, of a job or of an experiment.
func parseSpec(where, text string) (err error) {
	switch {
	case strings.HasPrefix(text, "algorithm:"):
		_, err = spec.Parse(where, []byte(text), "")
	case strings.HasPrefix(text, "name:"):
		_, err = experiment.Parse(context.Background(), where, []byte(text))
	}
	return err
}

// prologue is read by bash before a script. It has the commands of begin and end, of servers that a page takes
// for given, and of Go: they run in the repository, and what they build is the test binary.
const prologue = `
unset BASH_ENV
(read -r -u 3 _; kill -KILL -- -$$) >/dev/null 2>&1 & disown # if the test is killed
exec 3<&-
set -E -o pipefail
exec 8>&1
allowed=0 met=0
fail() {
	if [[ $1 == "$allowed" ]]; then met=1; return 0; fi
	echo "line $2: exit code $1: $3" >&8
	exit 1
}
begin() { block=$1 allowed=${2:-0} met=0; exec >"$OUTPUTS/$1" 2>&1; }
end() {
	if [[ $allowed == 0 && $1 != 0 ]]; then fail "$1" "$block" "the last command of the block"; fi
	if [[ $allowed != 0 && $met == 0 ]]; then echo "line $block: no command ended with exit code $allowed" >&8; exit 1; fi
	allowed=0
}
trap 'fail $? $LINENO "$BASH_COMMAND"' ERR
trap 'code=$?; trap - ERR; kill $(jobs -p) 2>/dev/null; wait; exit $code' EXIT
go() {
	case "$*" in
	"run ./cmd/coppice "*) coppice "${@:3}" ;;
	*./cmd/coppice*) (here=$PWD; cd "$REPOSITORY"; GOBIN=$HOME/go/bin command go "${@/#coppice/$here/coppice}") ;;
	*) command go "$@" ;;
	esac
}
listens() { until (: <"/dev/tcp/${1/://}") 2>/dev/null; do sleep 0.1; done; }
cluster() {
	coppice coordinator --id a --dir cluster/a --peers a=host1:7100,b=host2:7100,c=host3:7100 2>cluster-a.log & a=$!
	coppice coordinator --id b --dir cluster/b --peers a=host1:7100,b=host2:7100,c=host3:7100 2>cluster-b.log &
	coppice coordinator --id c --dir cluster/c --peers a=host1:7100,b=host2:7100,c=host3:7100 2>cluster-c.log &
	export COPPICE_SERVER=host1:7100,host2:7100,host3:7100
	coppice worker --join $COPPICE_SERVER --dir cluster/worker 2>cluster-worker.log &
	until coppice cluster | grep alive >/dev/null; do sleep 0.1; done
}
`

// pageNames lists the pages for users and contributors.
func pageNames(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "ARCHITECTURE.md", "BENCHMARKS.md", "CONTRIBUTING.md", "deploy/README.md"}
	err := fs.WalkDir(os.DirFS("../.."), "docs", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestPages: the commands of the pages for users work as they stand there.
func TestPages(t *testing.T) {
	testkit.WithoutRace(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	files := make(map[string]string)
	var all []*userPage
	for _, name := range pageNames(t) {
		p := readPage(t, name)
		all = append(all, p)
		for _, b := range p.blocks {
			if file := b.marks["file"]; file != "" {
				files[file] = strings.Join(b.text, "\n") + "\n"
			}
		}
	}
	maps.Copy(files, madeFiles(t))
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t, bash, files)
		})
	}
	t.Cleanup(func() { summary(t, all) })
}

// summary tells how many commands ran, and why others did not.
func summary(t *testing.T, all []*userPage) {
	ran, whole, left := 0, true, make(map[string]int)
	for _, p := range all {
		whole = whole && p.done
		ran += p.ran
		for reason, n := range p.left {
			left[reason] += n
		}
	}
	sum := 0
	for _, reason := range slices.SortedFunc(maps.Keys(left), func(a, b string) int {
		return cmp.Or(left[b]-left[a], strings.Compare(a, b))
	}) {
		sum += left[reason]
		t.Logf("%4d not run: %s", left[reason], reason)
	}
	t.Logf("%d commands of pages ran, %d are marked as not run", ran, sum)
	if whole && ran < 50 {
		t.Errorf("only %d commands ran: this looks at the wrong things", ran)
	}
}

// pageSlots bounds how many pages run at once: commands wait for a good part of their time.
var pageSlots = make(chan struct{}, 4)

// run runs the commands of a page in a folder of its own. Only -timeout of go test bounds it: how long a page takes
// depends on what else the machine does. A page that runs when the process ends is killed by its shell.
func (p *userPage) run(t *testing.T, bash string, files map[string]string) {
	p.dir, p.done = t.TempDir(), true
	pageSlots <- struct{}{}
	defer func() { <-pageSlots }()
	addresses := p.addresses(t)
	script := p.script(t, addresses)
	if p.ran+len(p.hidden) == 0 || t.Failed() {
		return
	}
	start := time.Now()
	for _, name := range p.with {
		if files[name] == "" {
			t.Fatalf("%s needs %s: it is neither a file of a page nor one of madeFiles", p.name, name)
		}
		cmdtest.Write(t, p.dir, name, files[name])
	}
	for _, folder := range []string{"experiment/shipped", "deploy/prometheus"} {
		if err := os.CopyFS(filepath.Join(p.dir, folder), os.DirFS(filepath.Join("..", "..", folder))); err != nil {
			t.Fatal(err)
		}
	}
	outputs, bin := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), bash, cmdtest.Write(t, bin, "page.sh", script))
	cmd.Dir, cmd.Env = p.dir, p.environment(t, bin, outputs, addresses)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	alive, test, err := os.Pipe() // if this process ends, the shell sees the end of alive
	if err != nil {
		t.Fatal(err)
	}
	defer test.Close()
	cmd.ExtraFiles = []*os.File{alive}
	said, err := cmd.CombinedOutput()
	alive.Close()
	if err != nil {
		t.Errorf("%s: %s: %v%s", p.name, bytes.TrimSpace(said), err, lastOutput(t, outputs))
		logs, _ := filepath.Glob(filepath.Join(p.dir, "*.log"))
		for _, log := range logs { // of the processes that the page started
			b, _ := os.ReadFile(log)
			t.Logf("the end of %s:\n%s", filepath.Base(log), b[max(0, len(b)-1000):])
		}
		return
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("%s: %d commands in %.1f s, with %.1f s of processor time", p.name, p.ran, time.Since(start).Seconds(),
		used.Seconds())
	p.compare(t, outputs)
}

// environment is what the shell of a page has.
func (p *userPage) environment(t *testing.T, bin, outputs string, addresses map[string]string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(bin, "coppice")); err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	shell := endpoint.ReplaceAllStringFunc(prologue, func(at string) string { return addresses[at] })
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "COPPICE_") })
	env := append(own, cmdtest.AsCommand+"=1", "BASH_ENV="+cmdtest.Write(t, bin, "prologue.sh", shell), "OUTPUTS="+outputs,
		"REPOSITORY="+top,
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+p.dir, "TMPDIR="+bin,
		"COPPICE_SERVER="+addresses["127.0.0.1:7100"])
	if !strings.Contains(strings.Join(p.lines, "\n"), "--join-cluster") { // which excludes --peers
		env = append(env, "COPPICE_PEERS=a="+addresses["127.0.0.1:7100"])
	}
	return append(env, goEnvironment(t)...)
}

// goEnvironment has Go's commands use the caches of this one, although HOME is another.
var goEnvironment = func() func(*testing.T) []string {
	get := sync.OnceValues(func() ([]byte, error) { return exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output() })
	return func(t *testing.T) []string {
		t.Helper()
		b, err := get()
		if err != nil {
			t.Fatal(err)
		}
		folders := strings.Split(strings.TrimSpace(string(b)), "\n")
		return []string{"GOCACHE=" + folders[0], "GOMODCACHE=" + folders[1]}
	}
}()

// addresses gives each address of a page a free port. The usual coordinator and the hosts of
// cluster have one on each page.
func (p *userPage) addresses(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"127.0.0.1:7100": "", "host1:7100": "", "host2:7100": "", "host3:7100": ""}
	for _, at := range endpoint.FindAllString(strings.Join(p.lines, "\n"), -1) {
		all[at] = ""
	}
	ports, err := freeport.Blocks(len(all))
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range slices.Sorted(maps.Keys(all)) {
		all[at] = freeport.Host + ":" + strconv.Itoa(ports[i])
	}
	return all
}

// compare looks for the lines of blocks that a page shows as printed in what its last command block printed.
func (p *userPage) compare(t *testing.T, outputs string) {
	t.Helper()
	last := 0
	for _, b := range p.blocks {
		if b.ran {
			last = b.first
		}
		if _, ok := b.marks["printed"]; !ok {
			continue
		}
		printed, err := os.ReadFile(filepath.Join(outputs, strconv.Itoa(last)))
		if err != nil {
			t.Errorf("%s:%d: it shows what was printed, and no block before it ran: %v", p.name, b.first, err)
			continue
		}
		var lines []string
		for line := range strings.Lines(string(printed)) {
			lines = append(lines, spaced(line))
		}
		for i, line := range b.text {
			if !slices.Contains(lines, spaced(line)) {
				t.Errorf("%s:%d: no line of the output is %q:\n%s", p.name, b.first+1+i, line, printed)
				break
			}
		}
	}
}

// spaced has one space between the words of a line, and hyphens for a rule: widths of columns may differ.
func spaced(line string) string {
	return rule.ReplaceAllString(strings.Join(strings.Fields(line), " "), "---")
}

// lastOutput returns the end of what the block printed that ran last.
func lastOutput(t *testing.T, outputs string) string {
	t.Helper()
	last := 0
	for _, name := range cmdtest.Contents(t, outputs) {
		if n, err := strconv.Atoi(name); err == nil {
			last = max(last, n)
		}
	}
	b, err := os.ReadFile(filepath.Join(outputs, strconv.Itoa(last)))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return fmt.Sprintf("\nthe block at line %d printed:\n%s", last, strings.Join(lines[max(0, len(lines)-30):], "\n"))
}

// madeFiles are the files that pages take for given: small ones, of the form that the pages tell of.
func madeFiles(t *testing.T) map[string]string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	survey, grade, ages, people := "id;comment;temp;size;p_low;p_mid;p_high\n", "years,f1,f2,grade\n", "f1,f2,f3,age\n",
		"person,f1,f2,age\n"
	songs := "tempo,energy,pitch,y_valence,y_arousal\n"
	for i := range 120 {
		x, y := random.Float64(), random.Float64()
		if i < 60 {
			low, mid := int(500*x), 100+int(300*y)
			row := fmt.Sprintf("%d;\"seen, %s\";%.1f;%.2f;0.%03d;0.%03d;0.%03d\n", 100+i, []string{"late", "ok"}[i%2], 10+20*x,
				y, low, mid, 1000-low-mid)
			survey += strings.ReplaceAll(row, ".", ",")
		}
		age := 1 + int(45*x) + random.IntN(20)
		grade += fmt.Sprintf("%d,%.3f,%.3f,%d\n", age, x, y, i%6)
		ages += fmt.Sprintf("%.3f,%.3f,%.3f,%d\n", x, y, x*y, age)
		people += fmt.Sprintf("p%d,%.3f,%.3f,%d\n", i/6, x, y, age)
		songs += fmt.Sprintf("%.0f,%.3f,%.3f,%.2f,%.1f\n", 60+120*x, y, x*y, 4*y-2+x*x, 20+60*x+9*y*y)
	}
	return map[string]string{
		"survey.csv": survey, "grade.csv": grade, "ages.csv": ages, "people.csv": people,
		"songs.csv":  songs,
		"SJAFFE.mat": standIn(random, 60, 24, 6), "Yeast_alpha.mat": standIn(random, 80, 24, 18),
	}
}

// standIn is a file of the form of the public data sets of LDL, with fewer samples and features.
func standIn(random *rand.Rand, samples, features, labels int) string {
	var x, d []float64 // by columns
	sums := make([]float64, samples)
	for range features * samples {
		x = append(x, random.Float64())
	}
	for j := range labels {
		for i := range samples {
			v := 0.2 + x[i+samples*j] + random.Float64()
			sums[i] += v
			d = append(d, v)
		}
	}
	for k := range d {
		d[k] /= sums[k%samples]
	}
	var f mattest.File
	f.AddDoubles("features", int32(samples), int32(features), x...)
	f.AddDoubles("labels", int32(samples), int32(labels), d...)
	return string(f.Bytes())
}
