package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

func layoutsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "layouts DIR…",
		Short: "Say what boards are in directories: layout, path, stories by stage",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if len(dirs) == 0 {
				return usagef("missing DIR")
			}
			any := false
			for _, dir := range dirs {
				dir, err := filepath.Abs(dir)
				if err != nil {
					return err
				}
				found, err := board.Find(dir, "")
				if err != nil {
					return err
				}
				if len(found) == 0 {
					found = board.Below(dir)
				}
				for _, f := range found {
					b, err := board.Open(board.Options{
						Dir: f.Dir, Layout: f.Layout, Log: slog.New(slog.DiscardHandler), Record: func(...feed.Notification) {},
					})
					if err != nil {
						fmt.Fprintf(cmd.ErrOrStderr(), "%s %s: %s\n", f.Layout, f.Dir, err)
						continue
					}
					any = true
					fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s\n", f.Layout, f.Dir, countStories(b.View()))
					for _, fault := range b.View().Faults {
						fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", f.Dir, fault.Text)
					}
				}
				if len(found) == 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "No board in %s%s\n", dir, belowHint("layouts", dir))
				}
			}
			if !any {
				return errors.New("none of the directories has a board; looked for " + board.SearchedLayouts())
			}
			return nil
		},
	}
}

// belowHint says how a command takes the boards below dir, or the directories in it, if there are any.
func belowHint(command, dir string) string {
	var boards []string
	for _, f := range board.Below(dir) {
		path := f.Dir
		if strings.ContainsFunc(path, needsQuotes) {
			path = shellQuoted(path)
		}
		if !slices.Contains(boards, path) {
			boards = append(boards, path)
		}
	}
	if len(boards) > 0 {
		return "; for those below it: switchyard up " + strings.Join(boards, " ")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ", which does not exist"
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.IsDir() && !strings.HasPrefix(e.Name(), ".") }) {
		return ""
	}
	return fmt.Sprintf("; for the directories in it: switchyard %s %s", command, filepath.Join(dir, "*"))
}

func needsQuotes(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-", r)
}

func countStories(view *board.View) string {
	counts := make([]string, len(view.Stages))
	for i, s := range view.Stages {
		stage := domain.Stage{Name: s.Name, Label: s.Label}
		counts[i] = fmt.Sprintf("%s %d", stage.Title(), len(s.Stories))
	}
	return strings.Join(counts, ", ")
}
