package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
	"belay/model/wire"
)

// The body, in the order in which it is sent: what never changes first, so that one request begins with the
// bytes of the one before it.
type body struct {
	System     *content    `json:"systemInstruction,omitempty"`
	Tools      []tools     `json:"tools,omitempty"`
	Calling    *toolConfig `json:"toolConfig,omitempty"`
	Generation *generation `json:"generationConfig,omitempty"`
	Contents   []content   `json:"contents"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []any  `json:"parts"` // of the parts below, or the provider's own bytes
}

type tools struct {
	Declarations []declaration `json:"functionDeclarations"`
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type generation struct {
	MaxOutputTokens int64           `json:"maxOutputTokens,omitempty"`
	Thinking        *thinkingConfig `json:"thinkingConfig,omitempty"`
	MIME            string          `json:"responseMimeType,omitempty"`
	Answer          json.RawMessage `json:"responseSchema,omitempty"`
}

type toolConfig struct {
	Calling calling `json:"functionCallingConfig"`
}

type calling struct {
	Mode    string   `json:"mode"`
	Allowed []string `json:"allowedFunctionNames,omitempty"`
}

type imagePart struct {
	Data inlineData `json:"inlineData"`
}

type inlineData struct {
	MIME string `json:"mimeType"`
	Data []byte `json:"data"`
}

type thinkingConfig struct {
	Include bool   `json:"includeThoughts,omitempty"`
	Budget  *int64 `json:"thinkingBudget,omitempty"`
	Level   string `json:"thinkingLevel,omitempty"`
}

type textPart struct {
	Text string `json:"text"`
}

type callPart struct {
	Call      functionCall `json:"functionCall"`
	Signature string       `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type responsePart struct {
	Response functionResponse `json:"functionResponse"`
}

type functionResponse struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name"`
	Response result `json:"response"`
	Parts    []any  `json:"parts,omitempty"` // images
}

type result struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

// unsigned stands for the signature of a call that another model made: Google documents it for such histories.
const unsigned = "skip_thought_signature_validator"

// budgets are what the levels of effort are in tokens, for models that want those.
var budgets = map[string]int64{"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}

// Encode returns the body that Stream sends.
func (c *Client) Encode(req model.Request) ([]byte, error) {
	b := body{Contents: []content{}}
	if strings.TrimSpace(req.System) != "" {
		b.System = &content{Parts: []any{textPart{req.System}}}
	}
	if len(req.Tools) > 0 {
		var list []declaration
		for _, t := range req.Tools {
			schema, err := wire.OpenAPISchema(t.Schema)
			if err != nil {
				return nil, fmt.Errorf("encode the tool %s for gemini: %w", t.Name, err)
			}
			list = append(list, declaration{t.Name, t.Description, schema})
		}
		b.Tools = []tools{{list}}
	}
	g := generation{MaxOutputTokens: req.MaxOutput, Thinking: c.thinking()}
	if req.Answer != nil && len(req.Tools) == 0 && !c.refused.Has("responseSchema") { // beside tools it is refused
		schema, err := wire.OpenAPISchema(req.Answer)
		if err != nil {
			return nil, fmt.Errorf("encode the shape of the answer for gemini: %w", err)
		}
		g.MIME, g.Answer = "application/json", schema
	}
	if g.MaxOutputTokens != 0 || g.Thinking != nil || g.MIME != "" {
		b.Generation = &g
	}
	if len(req.Tools) > 0 && !c.refused.Has("toolConfig") {
		switch name := req.Choice.Named(); {
		case name != "":
			b.Calling = &toolConfig{calling{"ANY", []string{name}}}
		case req.Choice == model.ChooseNone:
			b.Calling = &toolConfig{calling{Mode: "NONE"}}
		case req.Choice == model.ChooseSome:
			b.Calling = &toolConfig{calling{Mode: "ANY"}}
		}
	}
	keep := func(p message.Block) bool {
		switch p.Kind {
		case message.KindThinking, message.KindOpaque: // unsigned thoughts are nothing that a model reads again
			return c.own(p)
		}
		return true
	}
	names := map[string]string{} // of calls, by id
	for _, m := range wire.ArrangeInOrder(req.Messages, keep) {
		t := content{Role: "user"}
		if m.Role == message.Assistant {
			t.Role = "model"
		}
		first := true // call of this message
		for _, p := range m.Blocks {
			if p.Call != nil {
				names[p.Call.ID] = p.Call.Name
				t.Parts = append(t.Parts, c.call(p, first))
				first = false
				continue
			}
			part, images := c.part(p, names)
			t.Parts = append(append(t.Parts, part), images...)
		}
		if n := len(b.Contents); n > 0 && b.Contents[n-1].Role == "model" && t.Role == "model" { // turns must alternate
			b.Contents[n-1].Parts = append(b.Contents[n-1].Parts, t.Parts...)
			continue
		}
		b.Contents = append(b.Contents, t)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("encode the request for gemini: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func (c *Client) thinking() *thinkingConfig {
	if c.refused.Has("thinkingConfig") || (!c.quirks.thinks && c.effort == "") {
		return nil
	}
	t := thinkingConfig{Include: !c.refused.Has("includeThoughts")}
	if budget, known := budgets[strings.ToLower(c.effort)]; known && c.quirks.budgets && !c.refused.Has("thinkingBudget") {
		t.Budget = &budget
	} else if c.effort != "" && !c.quirks.budgets && !c.refused.Has("thinkingLevel") {
		t.Level = strings.ToUpper(c.effort)
	}
	return &t
}

// own says whether a block carries this provider's bytes, made by this model.
func (c *Client) own(p message.Block) bool {
	return wire.Bound(p.Opaque, c.info.Provider, c.info.Model, "") && !c.refused.Stale(p.Opaque)
}

// call puts the signature back on the part that it came on. The first call of a step must have one.
func (c *Client) call(p message.Block, first bool) any {
	part := callPart{Call: functionCall{wireID(p.Call.ID), p.Call.Name, stream.History(*p.Call)}}
	switch {
	case c.own(p):
		part.Signature = signatureOf(p.Opaque.Raw)
	case first && c.quirks.signed:
		part.Signature = unsigned
	}
	return part
}

// part is a block as this dialect takes it, and the images of a result where the model wants them beside it.
func (c *Client) part(p message.Block, names map[string]string) (part any, beside []any) {
	switch {
	case p.Result != nil:
		r := functionResponse{ID: wireID(p.Result.CallID), Name: names[p.Result.CallID]}
		text, images := wire.Shown(p.Result, c.info.Images)
		if p.Result.Error {
			r.Response.Error = &text
		} else {
			r.Response.Output = &text
		}
		for _, img := range images {
			beside = append(beside, imagePart{inlineData{img.MediaType, img.Data}})
		}
		if c.quirks.signed { // from the third generation on they belong into the answer itself
			r.Parts, beside = beside, nil
		}
		return responsePart{r}, beside
	case p.Image != nil:
		if why := wire.Unshown(*p.Image, c.info.Images); why != "" {
			return textPart{why}, nil
		}
		return imagePart{inlineData{p.Image.MediaType, p.Image.Data}}, nil
	case p.Opaque != nil && c.own(p):
		return p.Opaque.Raw, nil
	}
	return textPart{p.Text}, nil
}

// wireID is the id that a call came with; those that belay gave are nothing that the server knows: there calls and
// results belong together by their order and name.
func wireID(id string) string {
	if stream.Made(id) {
		return ""
	}
	return id
}

func signatureOf(raw json.RawMessage) string {
	var part struct {
		Signature string `json:"thoughtSignature"`
	}
	_ = json.Unmarshal(raw, &part) // made by the decoder
	return part.Signature
}
