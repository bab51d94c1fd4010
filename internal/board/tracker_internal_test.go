//go:build unix

package board

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// step is a scan of a board some time after the one before. The board is written "2_current: a@1 b@2!reason 3_qa:",
// which is stage, id, "@" and time of modification, and any of "!blocked", "^merge_failure", "=name",
// "~" for a torn file and "?" for an unreadable one. A stage written "2_current?:" could not be read.
type step struct {
	after time.Duration
	board string
	want  string // the notifications, separated by "; "
}

func TestRecordingRules(t *testing.T) {
	const ms = time.Millisecond
	for name, steps := range map[string][]step{
		"what is there at the start is no notifications": {
			{0, "1_backlog: a@1!key b@2^conflict 2_current: c@3", ""},
			{time.Hour, "1_backlog: a@1!key b@2^conflict 2_current: c@3", ""},
		},
		"a move": {
			{0, "2_current: a@1=Login 3_qa:", ""},
			{ms, "2_current: 3_qa: a@1=Login", "Login 2_current>3_qa"},
			{ms, "2_current: 3_qa: a@1=Login", ""},
		},
		"a move back and forth": {
			{0, "2_current: a@1 3_qa:", ""},
			{ms, "2_current: 3_qa: a@1", "a 2_current>3_qa"},
			{ms, "2_current: a@1 3_qa:", "a 3_qa>2_current"},
		},
		"a new item": {
			{0, "2_current:", ""},
			{ms, "2_current: a@1", "a >2_current"},
		},
		"a new item that is blocked": {
			{0, "2_current:", ""},
			{ms, "2_current: a@1!key^conflict", "a >2_current; a merge failed: conflict; a blocked: key"},
		},
		"blocked appears, changes, goes, comes back": {
			{0, "2_current: a@1", ""},
			{ms, "2_current: a@2!key", "a blocked: key"},
			{ms, "2_current: a@3!key", ""},
			{ms, "2_current: a@4!review", "a blocked: review"},
			{ms, "2_current: a@5", ""},
			{ms, "2_current: a@6!review", "a blocked: review"},
		},
		"a merge failure appears, changes, goes": {
			{0, "4_merge: a@1", ""},
			{ms, "4_merge: a@2^conflict", "a merge failed: conflict"},
			{ms, "4_merge: a@3^tests", "a merge failed: tests"},
			{ms, "4_merge: a@4", ""},
		},
		"a move that blocks": {
			{0, "2_current: a@1 3_qa:", ""},
			{ms, "2_current: 3_qa: a@2!key", "a 2_current>3_qa; a blocked: key"},
		},
		"several moves are recorded in the order of stages and numbers": {
			{0, "1_a: 1@1 2@1 10@1 2_b: 3@1", ""},
			{ms, "1_a: 3@1 2_b: 10@1 2@1 1@1", "3 2_b>1_a; 10 1_a>2_b; 2 1_a>2_b; 1 1_a>2_b"},
		},
		"copy and delete": {
			{0, "2_current: a@1 3_qa:", ""},
			{ms, "2_current: a@1 3_qa: a@2", "a 2_current>3_qa"},
			{time.Hour, "2_current: a@1 3_qa: a@2", ""},
			{ms, "2_current: 3_qa: a@2", ""},
		},
		"a copy that keeps the time, and delete": {
			{0, "2_current: a@1 3_qa:", ""},
			{ms, "2_current: a@1 3_qa: a@1", "a 2_current>3_qa"},
			{ms, "2_current: a@1 3_qa: a@1", ""},
			{ms, "2_current: 3_qa: a@1", ""},
		},
		"a copy to an earlier stage that keeps the time": {
			{0, "2_current: 3_qa: a@1", ""},
			{ms, "2_current: a@1 3_qa: a@1", "a 3_qa>2_current"},
			{ms, "2_current: a@1 3_qa: a@1", ""},
		},
		"an older copy counts once it is alone": {
			{0, "2_current: a@5 3_qa:", ""},
			{ms, "2_current: a@5 3_qa: a@1", ""},
			{ms, "2_current: 3_qa: a@1", "a 2_current>3_qa"},
		},
		"of two copies the one modified last counts": {
			{0, "2_current: a@1 3_qa: a@2", ""},
			{ms, "2_current: a@3 3_qa: a@2", "a 3_qa>2_current"},
			{ms, "2_current: a@3 3_qa: a@4!key", "a 2_current>3_qa; a blocked: key"},
		},
		"two copies of one time at the start count in the later stage": {
			{0, "2_current: a@1 3_qa: a@1", ""},
			{ms, "2_current: a@1 3_qa:", "a 3_qa>2_current"},
		},
		"a third copy that ties": {
			{0, "1_a: 2_b: x@1 3_c:", ""},
			{ms, "1_a: 2_b: x@1 3_c: x@1", "x 2_b>3_c"},
			{ms, "1_a: x@1 2_b: x@1 3_c: x@1", "x 3_c>1_a"},
			{ms, "1_a: x@1 2_b: x@1 3_c: x@1", ""},
			{ms, "1_a: x@1 2_b: x@1 3_c:", ""},
		},
		"vanished, back in another stage within a second": {
			{0, "2_current: a@1!key 3_qa:", ""},
			{ms, "2_current: 3_qa:", ""},
			{999 * ms, "2_current: 3_qa: a@2!key", "a 2_current>3_qa"},
		},
		"vanished, back in another stage after more than a second": {
			{0, "2_current: a@1!key 3_qa:", ""},
			{ms, "2_current: 3_qa:", ""},
			{1000 * ms, "2_current: 3_qa:", ""},
			{ms, "2_current: 3_qa: a@2!key", "a >3_qa; a blocked: key"},
		},
		"vanished, back in its stage within a second": {
			{0, "2_current: a@1!key 3_qa:", ""},
			{ms, "2_current: 3_qa:", ""},
			{999 * ms, "2_current: a@2!key 3_qa:", ""},
		},
		"vanished, back in both stages": {
			{0, "2_current: a@1 3_qa:", ""},
			{ms, "2_current: 3_qa:", ""},
			{ms, "2_current: a@1 3_qa: a@1", "a 2_current>3_qa"},
		},
		"a save by truncating and writing": {
			{0, "2_current: a@1!key=Login", ""},
			{ms, "2_current: a@2~", ""},
			{999 * ms, "2_current: a@3!key=Login", ""},
		},
		"a copy under way to another stage": {
			{0, "2_current: a@1!key=Login 3_qa:", ""},
			{ms, "2_current: a@1!key=Login 3_qa: a@2~", "Login 2_current>3_qa"},
			{ms, "2_current: 3_qa: a@2!key=Login", ""},
		},
		"a file that stays torn": {
			{0, "2_current: a@1!key=Login", ""},
			{ms, "2_current: a@2~", ""},
			{999 * ms, "2_current: a@2~", ""},
			{ms, "2_current: a@2~", ""},
			{ms, "2_current: a@3!key", "a blocked: key"},
		},
		"a new file that is still empty": {
			{0, "2_current:", ""},
			{ms, "2_current: a@1~", "a >2_current"},
			{ms, "2_current: a@2!key", "a blocked: key"},
		},
		"a file that cannot be read for a while": {
			{0, "2_current: a@1!key", ""},
			{ms, "2_current: a@1?", ""},
			{time.Hour, "2_current: a@1?", ""},
			{ms, "2_current: a@1!key", ""},
		},
		"a stage that cannot be read for a while": {
			{0, "2_current: a@1!key b@1 3_qa:", ""},
			{ms, "2_current?: a@1!key b@1 3_qa:", ""},
			{time.Hour, "2_current?: a@1!key b@1 3_qa: b@1", "b 2_current>3_qa"},
			{time.Hour, "2_current: a@1!key 3_qa: b@1", ""},
		},
		"a stage that could not be read at the start": {
			{0, "2_current?: 3_qa: b@1", ""},
			{time.Hour, "2_current?: 3_qa: b@1", ""},
			{time.Hour, "2_current: a@1!key 3_qa: b@1", ""},
			{ms, "2_current: a@1!key c@2!key 3_qa: b@1", "c >2_current; c blocked: key"},
		},
		"a stage that is new and cannot be read at first": {
			{0, "2_current:", ""},
			{ms, "2_current: 3_qa?:", ""},
			{ms, "2_current: 3_qa: a@1!key", ""},
		},
		"a stage that is renamed": {
			{0, "2_current: a@1!key b@1", ""},
			{ms, "2_doing: a@1!key b@1", "a 2_current>2_doing; b 2_current>2_doing"},
		},
		"a stage that goes and comes": {
			{0, "2_current: a@1!key", ""},
			{ms, "", ""},
			{ms, "2_current: a@1!key", ""},
		},
		"a new stage with an item that is blocked": {
			{0, "2_current:", ""},
			{ms, "2_current: 3_qa: a@1!key", "a >3_qa; a blocked: key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var board tracker
			now := time.UnixMilli(1_700_000_000_000)
			for i, step := range steps {
				now = now.Add(step.after)
				if got := recorded(board.update(now, stagesOf(t, step.board))); got != step.want {
					t.Fatalf("scan %d, %q: recorded %q, want %q", i+1, step.board, got, step.want)
				}
			}
		})
	}
}

func TestTheBoardShowsWhatCounts(t *testing.T) {
	var board tracker
	now := time.UnixMilli(1_700_000_000_000)
	for _, test := range []struct {
		after time.Duration
		board string
		want  string
		again time.Duration
	}{
		{0, "1_a: 9@200!key 10@100 2_b: x@300=X", "1_a [9 since 200 blocked key, 10 since 100] 2_b [X since 300]", 0},
		{time.Second, "1_a: 9@200 2_b: 10@100^tests x@300=X", "1_a [9 since 200] 2_b [10 since 1700000001000 failed tests, X since 300]", 0},
		{time.Second, "1_a: 9@200 2_b: 10@100", "1_a [9 since 200] 2_b [10 since 1700000001000, X since 300]", time.Second},
		{400 * time.Millisecond, "1_a: 9@200~ 2_b: 10@100", "1_a [9 since 200] 2_b [10 since 1700000001000, X since 300]", 600 * time.Millisecond},
		{600 * time.Millisecond, "1_a: 9@200~ 2_b: 10@100", "1_a [9 since 200] 2_b [10 since 1700000001000]", 400 * time.Millisecond},
		{time.Second, "2_b: 10@100", "2_b [10 since 1700000001000]", time.Second},
		{time.Second, "2_b: 10@100 3_c:", "2_b [10 since 1700000001000] 3_c []", 0},
		{time.Second, "", "", time.Second},
	} {
		now = now.Add(test.after)
		before := fmt.Sprint(show(board))
		found := board.update(now, stagesOf(t, test.board))
		if got := show(board); got != test.want {
			t.Fatalf("%q:\ngot  %s\nwant %s", test.board, got, test.want)
		}
		if changed := before != test.want; changed && !found.view {
			t.Errorf("%q: changed is %t", test.board, found.view)
		}
		if test.again == 0 && !found.rescan.IsZero() || test.again != 0 && !found.rescan.Equal(now.Add(test.again)) {
			t.Errorf("%q: scan again at %v, now is %v", test.board, found.rescan, now)
		}
	}
}

func TestAScanWithoutChangeChangesNothing(t *testing.T) {
	var board tracker
	now := time.UnixMilli(1_700_000_000_000)
	for i := range 3 {
		found := board.update(now.Add(time.Duration(i)*time.Minute), stagesOf(t, "1_a: x@1!key y@2~ 2_b: x@1 z@3?"))
		if want := i == 0; i != 1 && found.view != want { // at the second one y is found to be broken for good
			t.Errorf("scan %d: changed is %t", i+1, found.view)
		}
	}
}

func show(t tracker) string {
	var stages []string
	for _, stage := range t.board() {
		var items []string
		for _, item := range stage.Stories {
			text := fmt.Sprintf("%s since %d", item.Name, item.Since.UnixMilli())
			if item.Blocked != "" {
				text += " blocked " + item.Blocked
			}
			if item.MergeFailure != "" {
				text += " failed " + item.MergeFailure
			}
			items = append(items, text)
		}
		stages = append(stages, fmt.Sprintf("%s [%s]", stage.Name, strings.Join(items, ", ")))
	}
	return strings.Join(stages, " ")
}

func recorded(found changes) string {
	var lines []string
	for _, n := range found.notifications {
		if n.Type == domain.StageTransition {
			lines = append(lines, fmt.Sprintf("%s %s>%s", n.Name, n.FromStage, n.ToStage))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", n.Name, n.Type.Kind().Choice, n.Reason))
	}
	return strings.Join(lines, "; ")
}

func stagesOf(t *testing.T, board string) []*stage {
	t.Helper()
	var stages []*stage
	for word := range strings.FieldsSeq(board) {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			st := &stage{}
			if st.name, ok = strings.CutSuffix(name, "?"); ok {
				st.err = errors.New("cannot be read")
			}
			stages = append(stages, st)
			continue
		}
		end := strings.IndexAny(word, "!^=~?")
		if end < 0 {
			end = len(word)
		}
		var stamp int64
		id, at, _ := strings.Cut(word[:end], "@")
		if _, err := fmt.Sscan(at, &stamp); err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		f := &file{id: id, modified: time.UnixMilli(stamp)}
		for rest := word[end:]; rest != ""; {
			end := strings.IndexAny(rest[1:], "!^=~?") + 1
			if end == 0 {
				end = len(rest)
			}
			switch value := rest[1:end]; rest[0] {
			case '!':
				f.facts.blocked = value
			case '^':
				f.facts.mergeFailure = value
			case '=':
				f.facts.name = value
			case '~':
				f.facts = facts{state: torn}
			case '?':
				f.facts = facts{state: unreadable}
			}
			rest = rest[end:]
		}
		last := stages[len(stages)-1]
		last.files = append(last.files, f)
	}
	return stages
}

func TestABlockHasItsOwnTime(t *testing.T) {
	var board tracker
	start := time.UnixMilli(1_700_000_000_000)
	for _, step := range []struct {
		after                 time.Duration
		board                 string
		since, sinceIsBlocked int64
	}{
		{0, "1_a: x@100!key 2_b:", 100, 100},
		{time.Second, "1_a: x@900!review 2_b:", 100, 100},
		{2 * time.Second, "1_a: 2_b: x@950!review", start.UnixMilli() + 2000, 100},
		{3 * time.Second, "1_a: 2_b: x@960", start.UnixMilli() + 2000, 0},
		{4 * time.Second, "1_a: 2_b: x@970!key", start.UnixMilli() + 2000, start.UnixMilli() + 4000},
	} {
		board.update(start.Add(step.after), stagesOf(t, step.board))
		got := board.stories["x"].public()
		blocked := int64(0)
		if !got.BlockedSince.IsZero() {
			blocked = got.BlockedSince.UnixMilli()
		}
		if got.Since.UnixMilli() != step.since || blocked != step.sinceIsBlocked {
			t.Errorf("%s: since %d, blocked since %d", step.board, got.Since.UnixMilli(), blocked)
		}
	}
}
