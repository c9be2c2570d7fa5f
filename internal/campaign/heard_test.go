package campaign

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Every field of an answer, whoever adds it, comes back in another process: one
// that is lost is not judged there.
func TestNothingOfAnAnswerIsLost(t *testing.T) {
	e := wire.Exchange{Seq: 3}
	a := &wire.Answer{}
	fillIn(t, reflect.ValueOf(a).Elem())
	a.Pieces[0].Text, a.Joined[0].Text = "no \xff UTF-8", "\xfe\xff"
	a.Raw.Bytes = nil // stands in a file of its own
	e.Answer = a
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, heardFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	d := &runDir{path: dir}
	k := &kept{Exchange: e, Requests: 2, Lost: 3, Counts: []int{4, -1}}
	if err := d.keepHeard(k); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	var got kept
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if err := got.hear(dir); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&got, k) {
		t.Errorf("came back as\n%+v\nand not\n%+v", got.Answer, k.Answer)
	}
}

// fillIn gives every field, at any depth, a value that is not zero.
func fillIn(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(t, v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 5).UTC()))
			return
		}
		for i := range v.NumField() {
			fillIn(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillIn(t, v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillIn(t, key)
		fillIn(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("words")
	case reflect.Int, reflect.Int64:
		v.SetInt(5)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("an answer holds a %v: say how to fill it in", v.Kind())
	}
}
