package domain

import "encoding/json"

// ToolUse is the use of a tool as a coding agent asked for it.
type ToolUse struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	CWD   *string         `json:"cwd"`
	// Cut is whether Input is not the real input but a text with its beginning.
	Cut bool `json:"input_cut"`
}

// Shorten cuts a long input.
func (u *ToolUse) Shorten() *ToolUse {
	if u == nil || len(u.Input) <= MaxDetail {
		return u
	}
	return &ToolUse{u.Name, EncodeJSON(CutBytes(string(u.Input), MaxDetail)), u.CWD, true}
}

// Command returns the command of a tool that has one, with any other input on a last line; and its description, in the
// agent's own words.
func (u *ToolUse) Command() (command, description string, ok bool) {
	var members map[string]json.RawMessage
	if u == nil || json.Unmarshal(u.Input, &members) != nil || json.Unmarshal(members["command"], &command) != nil ||
		string(members["command"]) == "null" {
		return "", "", false
	}
	delete(members, "command")
	if json.Unmarshal(members["description"], &description) == nil {
		delete(members, "description")
	}
	if len(members) > 0 {
		command += "\n\n" + string(EncodeJSON(members))
	}
	return command, description, true
}
