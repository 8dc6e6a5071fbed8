package webpage_test

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/coppice-ldl/coppice/harness/browser"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestKeyboard: a user logs in, submits a job, watches it, cancels it and logs out with the keys Tab and Enter alone.
func TestKeyboard(t *testing.T) {
	testkit.WithoutRace(t)
	b := browser.Start(t)
	dir := t.TempDir()
	issuer, err := proc.NewCertificates(filepath.Join(dir, "certs"))
	if err != nil {
		t.Fatal(err)
	}
	c := cmdtest.StartWith(t, proc.Config{Coordinators: 1, Workers: 1, Certificates: issuer})
	there := append(issuer.ClientFlags(), "--server", c.Servers())
	cmdtest.Works(t, append([]string{"dataset", "import", "--data", cmdtest.ArtificialFile(t, dir, "set.csv", 2000, 1),
		"--name", "set", "--shared"}, there...)...)
	var made struct {
		Token string `json:"token"`
	}
	cmdtest.JSON(t, &made, append([]string{"token", "create", "ana", "--role", "submit"}, there...)...)
	tab := b.Open(t, "https://"+c.Servers()+"/ui")

	tab.Await("the form of the login", `document.querySelector("input[name=token]")`)
	if focused := browser.Eval[string](tab, "document.activeElement.name || ''"); focused != "token" {
		tab.TabTo("Token")
	}
	tab.Press(made.Token + kb.Enter)
	tab.Await("the overview", `document.querySelector("h1").textContent === "Overview"`)

	tab.TabTo("Submit")
	tab.Press(kb.Enter)
	tab.Await("the form of a job", `location.pathname.endsWith("/submit")`)
	submit(t, tab)
	tab.Await("the page of the job", `/jobs\/\d+/.test(location.pathname)`)
	tab.Await("the job to run without a reload", `document.querySelector("main .state.running")`)
	tab.TabTo("Cancel")
	tab.Press(kb.Enter)
	tab.Await("the question", `location.pathname.endsWith("/cancel")`)
	tab.TabTo("Cancel the job")
	tab.Press(kb.Enter)
	tab.Await("the job to end", `document.querySelector("main .state.cancelled")`)

	tab.TabTo("Log out")
	tab.Press(kb.Enter)
	tab.Await("the login again", `document.querySelector("input[name=token]")`)
	tab.Visit("https://" + c.Servers() + "/ui/jobs")
	tab.Await("the login in place of the jobs", `document.querySelector("input[name=token]")`)
	for _, f := range tab.Findings() {
		t.Error(f)
	}
}

// submit fills in the form of a job that takes long, and sends it.
func submit(t *testing.T, tab *browser.Tab) {
	t.Helper()
	tab.TabTo("dataset")
	tab.Press("set")
	tab.TabTo("Continue")
	tab.Press(kb.Enter)
	tab.Await("the settings of the algorithm", `document.querySelector("#f-name")`)
	tab.TabTo("name")
	tab.Press("by-keyboard")
	tab.TabTo("Submit")
	if browser.Eval[string](tab, "document.activeElement.tagName") == "A" { // of the navigation
		tab.TabTo("Submit")
	}
	tab.Press(kb.Enter)
}
