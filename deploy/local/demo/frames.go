package demo

import (
	_ "embed"
	"encoding/json/v2"
	"fmt"
	"strings"
)

//go:embed testdata/frames.json
var rawFrames []byte

// frame is a frame or layer as it stands in a real Figma file: what a plugin reads from the selection and sends as it is.
type frame struct {
	FileKey string `json:"figmaFileKey"`
	NodeID  string `json:"nodeId"`
	Name    string `json:"name"`
}

// node is the form in which the suite keeps the id: with colons, also where the frame's id was copied from a link.
func (f frame) node() string { return strings.ReplaceAll(f.NodeID, "-", ":") }

// frames are the selections that the stories are about.
type frames struct {
	Confirmed     frame   `json:"confirmed"`
	AutoConfirmed frame   `json:"autoConfirmed"` // a backspace in its name
	Imported      frame   `json:"imported"`
	Dashed        frame   `json:"dashed"` // an id in the form of links
	DashedTwin    frame   `json:"dashedTwin"`
	Sublayer      frame   `json:"sublayer"` // a path of ids, and a backspace
	Emoji         frame   `json:"emoji"`
	Control       frame   `json:"control"` // U+0010 in its name
	Long          frame   `json:"long"`    // more than a screen id may have
	Page          []frame `json:"page"`    // spaces at the edges, U+180E, U+1004D4, U+2028
}

func readFrames() (frames, error) {
	var all frames
	if err := json.Unmarshal(rawFrames, &all, json.RejectUnknownMembers(true)); err != nil {
		return all, fmt.Errorf("demo: frames: %w", err)
	}
	return all, nil
}
