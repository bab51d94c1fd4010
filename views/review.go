package views

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

// isReviewed reports whether the last verdict is about what is shown.
func (p ChangesProps) isReviewed() bool {
	r := p.Story.Review
	return r != nil && p.Changes != nil && r.Head == p.Changes.Head
}

// isApproved reports whether what is shown is approved.
func (p ChangesProps) isApproved() bool {
	return p.isReviewed() && p.Story.Review.Verdict == domain.Approved
}

// stageAfter is where a verdict moves the story, "" if it stays.
func (p ChangesProps) stageAfter(v domain.Verdict) string {
	if to := v.StageAfter(p.Stages, p.Story.Stage, p.Story.Claim != nil); to != p.Story.Stage && canWrite(p.Story) {
		return to
	}
	return ""
}

// agent is who gets the note of a verdict, "" if nobody yet.
func (p ChangesProps) agent() string {
	if p.Story.Claim != nil {
		return domain.Cut(p.Story.Claim.By, 60)
	}
	return ""
}

// unmergeable says why what is shown cannot be merged now, "" if it can.
func (p ChangesProps) unmergeable() string {
	n := len(p.Changes.Conflicts)
	switch {
	case p.Place.Merged || p.Changes.Ahead == 0:
		return "nothing to merge"
	case p.Place.Branch == "":
		return "its work tree is on no branch"
	case n > 0:
		return "not while " + domain.Count(n, "file conflicts", "files conflict")
	case !p.isApproved() && !p.isFinished():
		return "once it is approved"
	case p.Story.File.Merges:
		return ""
	}
	return "its project server does not merge"
}

// merges reports whether the reader can have it merged now.
func (p ChangesProps) merges(ctx context.Context) bool {
	return may(ctx, domain.RoleOperator) && p.unmergeable() == ""
}

// mergeCommand merges by hand what is shown.
func (p ChangesProps) mergeCommand() string { return "git merge --no-ff " + shellWord(p.Place.Branch) }

// tidyCommand removes the work tree and the branch of a merged place, "" if there is anything else in it.
func (p ChangesProps) tidyCommand() string {
	var parts []string
	if p.Place.Worktree != "" {
		force := ""
		if p.Place.Uncommitted > 0 {
			own := p.Story.File.Path
			mine := func(name string) bool { return name == own || strings.HasSuffix(name, "/"+own) }
			for _, f := range p.Changes.Uncommitted.Files {
				if !mine(f.Path) && (f.From == nil || !mine(*f.From)) {
					return ""
				}
			}
			if slices.ContainsFunc(p.Changes.Untracked, func(name string) bool { return !mine(name) }) {
				return ""
			}
			force = "--force "
		}
		parts = append(parts, "git worktree remove "+force+shellWord(p.Place.Worktree))
	}
	if p.Place.Branch != "" {
		parts = append(parts, "git branch -d "+shellWord(p.Place.Branch))
	}
	return strings.Join(parts, " && ")
}

// openCriteria are the story's unticked boxes, as lines of a note.
func (p ChangesProps) openCriteria() (n int, lines string) {
	for _, t := range p.Story.File.Tasks {
		if !t.Done && !t.Optional {
			n++
			lines += "still open: " + domain.Cut(t.Text, 200) + "\n"
		}
	}
	return n, lines
}

// dueReview is what a review is about now, nil if none is due: the first place is ahead, nobody works on the story, and
// no verdict applies to its head.
func dueReview(p StoryProps) *domain.Place {
	if p.Story.File == nil || len(p.Story.File.Work) == 0 {
		return nil
	}
	first := &p.Story.File.Work[0]
	sessions := byAgent(p.Sessions)
	isAtWork := func(s domain.AgentSession) bool { return s.State == domain.SessionWorking }
	runs := func(a domain.RegisteredAgent) bool { // its session knows better
		return a.State == domain.AgentRunning && sessions[a.ID] == nil
	}
	works := slices.ContainsFunc(p.Sessions, isAtWork) || slices.ContainsFunc(p.Agents, runs)
	r := p.Story.Review
	if first.Ahead == 0 || first.Merged || works || r != nil && domain.PlaceWith(p.Story.File.Work[:1], r.Head) != nil {
		return nil
	}
	return first
}

// mergeable is the approved place that the reader can have merged now, nil for none.
func mergeable(ctx context.Context, p StoryProps) *domain.Place {
	r, f := p.Story.Review, p.Story.File
	if r == nil || r.Verdict != domain.Approved || f == nil || !f.Merges || !may(ctx, domain.RoleOperator) {
		return nil
	}
	of := domain.PlaceWith(f.Work, r.Head)
	isUnderWay := p.MergeAttempt != nil && p.MergeAttempt.Refused == ""
	if of == nil || of.Merged || of.Ahead == 0 || of.Branch == "" || len(of.Conflicts) > 0 || isUnderWay {
		return nil
	}
	return of
}

// dueText says what is to be read: "3 commits, 12 files".
func dueText(of domain.Place) string {
	return domain.Count(of.Ahead, "commit", "commits") + ", " + domain.Count(of.Files, "file", "files") + " on"
}

// newHead is the head of the first place if the one that the reader has opened is no longer a head, otherwise "".
func newHead(p StoryProps) string {
	if p.Head == "" || p.Story.File == nil || domain.PlaceWith(p.Story.File.Work, p.Head) != nil ||
		len(p.Story.File.Work) == 0 {
		return ""
	}
	return p.Story.File.Work[0].Head
}

// noteRows is the height of the field for a note.
func noteRows(note string) string { return strconv.Itoa(min(12, max(4, strings.Count(note, "\n")+2))) }
