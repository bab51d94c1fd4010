package main

import (
	"os/exec"
	"testing"

	"switchyard/internal/browsertest"
)

// TestTheFirstStepsAreDoneOneByOne: the command on the page moves a file, its wagon travels, and the strip shows it as done. The
// strip disappears once a real project has been added.
func TestTheFirstStepsAreDoneOneByOne(t *testing.T) {
	browsertest.Needed(t)
	dir := t.TempDir()
	up := start(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data with a space"))
	tab := browsertest.Open(t)
	tab.Goto(up.url + "/")
	tab.Find("heading", "This is a track")
	tab.Find("heading", "Move this file and watch")
	command := browsertest.Eval[string](tab, `document.getElementById('first-move').textContent`)
	story := browsertest.Eval[string](tab, `document.getElementById('first-move').textContent.match(/([^/]+)\.md/)[1]`)
	station := `document.querySelector('.wagon[href$="` + story + `"]')?.closest('td').dataset.label`
	tab.Wait(station + ` === 'Current'`)
	browsertest.Eval[bool](tab, `window.travelled = '', Element.prototype.animate = function () {
		window.travelled += this.href + ' '
		return { finished: Promise.resolve() }
	}, true`)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	tab.Wait(station + ` === 'QA'`)
	tab.Wait(`window.travelled.includes('` + story + `')`)
	tab.WaitText("You moved a story")

	tab.Goto(up.url + "/")
	tab.WaitText("You moved a story")
	tab.Find("link", "Add a project").Click()
	tab.Wait(`location.pathname + location.hash === '/projects#add-project'`)
	tab.Find("textbox", "URL")
	remote{t, up.url}.register("mine", "http://127.0.0.1:9")
	tab.Goto(up.url + "/")
	tab.WaitText("mine")
	if browsertest.Eval[bool](tab, `document.body.innerText.includes('This is a track')`) {
		t.Error("the steps are still shown")
	}
}
