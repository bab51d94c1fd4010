package board

import (
	"errors"
	"math/big"
	"os"
	"strings"
	"unicode"
)

// maxSlug is the longest part of a story's id that is made from its name, in bytes: a file name has at most 255.
const maxSlug = 120

func newStory(name, body string) []byte {
	content := "---\nname: " + yamlString(name) + "\n---\n"
	if body = strings.Trim(body, "\r\n"); body != "" {
		content += "\n" + body + "\n"
	}
	return []byte(content)
}

func add(dir *os.File, name string, content []byte) error {
	temp, err := writeTemp(dir, content, nil)
	if err != nil {
		return err
	}
	if err := renameNew(dir, temp, dir, name); err != nil {
		return errors.Join(err, removeAt(dir, temp))
	}
	return syncDir(dir)
}

// nextNumber returns one more than the highest number at the start of an id in stages, of any length.
func nextNumber(stages []*stage) string {
	var highest big.Int
	for _, stage := range stages {
		for _, file := range stage.files {
			if n, ok := new(big.Int).SetString(number(file.id), 10); ok && n.Cmp(&highest) > 0 {
				highest = *n
			}
		}
	}
	return highest.Add(&highest, big.NewInt(1)).String()
}

// slug returns the letters and digits of a text in lower case, with "_" for everything between.
func slug(text string) string {
	isOther := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), isOther), "_")
}
