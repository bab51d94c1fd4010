package board

import (
	"errors"
	"io/fs"
	"math/big"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// maxSlug is the longest part of a story's id that is made from its name, in bytes: a file's name has at most 255.
const maxSlug = 120

// Create adds a story with that name and Markdown body to a stage, "" for the first one. Its id is one more than the
// highest number on the board, followed by its name. It returns a Forbidden error unless Options allow writes, Invalid
// for an invalid name or stage, and TooLarge for a body that does not fit in a file.
func (b *Board) Create(name, body, stage string) (*Details, error) {
	if err := b.checkWritable(); err != nil {
		return nil, err
	}
	name = strings.TrimSpace(name)
	if err := checkText("name", name); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return nil, domain.Errorf(domain.Invalid, "name: must be one line")
	}
	content := newStory(name, body)
	if len(content) > maxFile {
		return nil, domain.Errorf(domain.TooLarge, "body: the file would be larger than 1 MiB")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.scan(nil); err != nil {
		return nil, Unavailable(err)
	}
	if stages := b.View().Stages; stage == "" && len(stages) > 0 {
		stage = stages[0].Name
	}
	dir, err := b.openTarget(stage)
	if err != nil {
		return nil, writeError(err)
	}
	defer dir.Close()
	id := b.nextNumber() + "_story_" + slug(name)
	if err := add(dir, id+".md", content); err != nil {
		return nil, writeError(err)
	}
	_, _ = b.scan(stageSet{stage: {id: true}}) // if it fails, the view says so
	return b.read(id)
}

func newStory(name, body string) []byte {
	content := "---\nname: " + yamlString(name) + "\n---\n"
	if body = strings.Trim(body, "\r\n"); body != "" {
		content += "\n" + body + "\n"
	}
	return []byte(content)
}

// add writes a file that does not exist yet.
func add(dir *os.File, name string, content []byte) error {
	temp, err := writeTemp(dir, content, nil)
	if err != nil {
		return err
	}
	if err := renameNew(dir, temp, dir, name); err != nil {
		if removeErr := removeAt(dir, temp); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
		return err
	}
	return dir.Sync()
}

// nextNumber returns one more than the highest number that an id begins with, of any length.
func (b *Board) nextNumber() string {
	var highest big.Int
	for _, stage := range b.scanner.stages {
		for _, file := range stage.files {
			if n, ok := new(big.Int).SetString(number(file.id), 10); ok && n.Cmp(&highest) > 0 {
				highest = *n
			}
		}
	}
	return highest.Add(&highest, big.NewInt(1)).String()
}

// slug returns the letters and digits of a name in lower case, separated by "_".
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	text := strings.Join(words, "_")
	if len(text) <= maxSlug {
		return text
	}
	end := maxSlug
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], "_")
}
