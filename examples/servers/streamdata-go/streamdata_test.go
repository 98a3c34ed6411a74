package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const payloadText = `{"name":"n","deviceId":"d","patientId":"p","data":[{"hr":1,"bps":2,"bpd":3,"spo2":4,` +
	`"custom":{"tp":10.5,"rr":6,"etc":"e"},"date":"t"}]}`

func variables(given map[string]string) lookup {
	return func(name string) (string, bool) {
		value, found := given[name]
		return value, found
	}
}

func TestDefaultsArePort8080OfEveryIPv4Address(t *testing.T) {
	address, err := listenAddress(variables(nil))
	if address != "0.0.0.0:8080" || err != nil {
		t.Fatal(address, err)
	}
}

func TestHostsHaveCommasBetween(t *testing.T) {
	service, err := serviceFrom(variables(map[string]string{"SERVICE_HOST": "one, 10.0.0.2", "SERVICE_PORT": "81"}))
	if err != nil || !slices.Equal(service.hosts, []string{"one", "10.0.0.2"}) || service.port != 81 {
		t.Fatal(service, err)
	}
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	for _, wrong := range [][2]string{
		{"PORT", "0"}, {"PORT", "65536"}, {"PORT", ""}, {"LISTEN_ADDRESS", "localhost"},
		{"SERVICE_HOST", ""}, {"SERVICE_HOST", "one,,two"}, {"SERVICE_PORT", ""}, {"SERVICE_PORT", "http"},
	} {
		given := map[string]string{"SERVICE_HOST": "one", "SERVICE_PORT": "8080"}
		given[wrong[0]] = wrong[1]
		_, listen := listenAddress(variables(given))
		_, service := serviceFrom(variables(given))
		err := listen
		if err == nil {
			err = service
		}
		if err == nil || !strings.HasPrefix(err.Error(), wrong[0]) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestAPayloadIsWrittenAsItWasRead(t *testing.T) {
	for _, name := range []string{"n", "<&>"} {
		given := strings.Replace(payloadText, `"n"`, `"`+name+`"`, 1)
		read, err := readPayload([]byte(given))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(read); err != nil || text.String() != given+"\n" {
			t.Errorf("%v %s", err, text.String())
		}
	}
}

func TestWhatIsWrongInAPayloadIsSaid(t *testing.T) {
	for _, wrong := range [][3]string{
		{`"name":"n",`, "", "missing field `name`"},
		{`"rr":6,`, "", "missing field `rr`"},
		{`"hr":1`, `"hr":1.5`, "not a payload: json: cannot unmarshal"},
		{`"deviceId":"d"`, `"deviceId":""`, "deviceId is empty"},
		{`"name":"n"`, "\"name\":\"\xff\"", "it is not UTF-8"},
	} {
		_, err := readPayload([]byte(strings.Replace(payloadText, wrong[0], wrong[1], 1)))
		if err == nil || !strings.Contains(err.Error(), wrong[2]) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestTheLastPayloadOfEachDeviceIsKeptAndNoMoreDevices(t *testing.T) {
	devices := newDevices(2)
	keep := func(deviceID, name string) (*payload, error) {
		one := &payload{DeviceID: &deviceID, Name: &name}
		return one, devices.keep(one)
	}
	_, _ = keep("a", "first")
	b, _ := keep("b", "first")
	if _, err := keep("c", "first"); err != error(errFull) {
		t.Error(err)
	}
	a, err := keep("a", "second")
	if err != nil || devices.kept("a") != a || devices.kept("b") != b || devices.kept("c") != nil {
		t.Error(err, devices.payloads)
	}
}

func TestOnlyEndToEndHeadersStay(t *testing.T) {
	header := http.Header{}
	for _, one := range [][2]string{
		{"Connection", "close, X-One"}, {"Connection", " x-two ,,"}, {"X-One", "1"}, {"X-Two", "2"},
		{"Keep-Alive", "timeout=5"}, {"TE", "trailers"}, {"Upgrade", "websocket"},
		{"X-Three", "3"}, {"Accept", "a"}, {"Accept", "b"},
	} {
		header.Add(one[0], one[1])
	}
	removeHopByHop(header)
	if !maps.EqualFunc(header, http.Header{"Accept": {"a", "b"}, "X-Three": {"3"}}, slices.Equal) {
		t.Error(header)
	}
}

func address(last byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, last}), 8080)
}

func tried(backends *backends, turn uint64) []byte {
	var last []byte
	for one := range backends.rotation().order(turn) {
		last = append(last, one.address.Addr().As4()[3])
	}
	return last
}

func TestHealthyBackendsTakeTurnsAndTheOthersComeLast(t *testing.T) {
	backends := &backends{}
	if order := tried(backends, 3); order != nil {
		t.Error(order)
	}
	all := []netip.AddrPort{address(1), address(2), address(3), address(4)}
	backends.set(all)
	if order := tried(backends, 1); !slices.Equal(order, []byte{2, 3, 4, 1}) {
		t.Error(order)
	}
	for _, one := range backends.rotation().all {
		one.setHealthy(one.address != address(2))
	}
	backends.set(all)
	for turn, expected := range [][]byte{{1, 3, 4, 2}, {3, 4, 1, 2}, {4, 1, 3, 2}, {1, 3, 4, 2}} {
		if order := tried(backends, uint64(turn)); !slices.Equal(order, expected) {
			t.Error(turn, order)
		}
	}
}

func TestABackendKeepsItsCountsWhileItIsKnown(t *testing.T) {
	backends := &backends{}
	backends.set([]netip.AddrPort{address(1), address(2)})
	for one := range backends.rotation().order(0) {
		one.begin()
		one.fail()
		one.end()
	}
	backends.set([]netip.AddrPort{address(2), address(3)})
	expected := map[string]backendStats{"10.0.0.2:8080": {Requests: 1, Failures: 1}, "10.0.0.3:8080": {}}
	if stats := backends.rotation().stats(); !maps.Equal(stats, expected) {
		t.Error(stats)
	}
}

func TestAPodWithTwoFamiliesIsOneBackend(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	if found := preferred([]netip.Addr{six, four}); !slices.Equal(found, []netip.Addr{four}) {
		t.Error(found)
	}
	if found := preferred([]netip.Addr{six}); !slices.Equal(found, []netip.Addr{six}) {
		t.Error(found)
	}
}

func TestAnAddressOfTwoHostsIsOneBackend(t *testing.T) {
	one, two := address(1).Addr(), address(2).Addr()
	hosts := map[string]found{
		"a": {addresses: []netip.Addr{two, one}}, "b": {addresses: []netip.Addr{one}}, "c": {fault: "unknown"},
	}
	if found := addressesOf(hosts, 8080); !slices.Equal(found, []netip.AddrPort{address(1), address(2)}) {
		t.Error(found)
	}
}

func TestAddressesStayWhereALookupFails(t *testing.T) {
	last := found{addresses: []netip.Addr{address(1).Addr()}}
	if now := resolve("none.invalid", last); !slices.Equal(now.addresses, last.addresses) {
		t.Error(now)
	}
}

func TestArgumentsAreOneRoleOrHelp(t *testing.T) {
	for given, expected := range map[string]string{
		"serve": "serve", "balance": "balance", "": "", "other": "", "serve balance": "", "serve --x": "",
	} {
		if role, help := arguments(strings.Fields(given)); role != expected || help {
			t.Error(given, role, help)
		}
	}
	if _, help := arguments([]string{"serve", "--help"}); !help {
		t.Error("no help")
	}
}
