-- SwitchGNN packets in Wireshark and tshark: docs/packets.md says how to use it, and
-- docs/protocol.md and docs/transports.md what the fields mean.
--
-- IPv4 protocols 253 and 254 are for anybody's experiments. A packet is taken for one of ours if
-- its checksum is right, or if version, kind and length are those of ours; others are left alone.

local TO_SWITCH, BETWEEN_HOSTS = 253, 254
local VERSION = 5
local HEADER_BYTES, CHECKED_BYTES = 26, 22
local BARRIER_BYTES, WAITING_BYTES = 28, 44
local WORKER_BYTES = 16
-- Of a bundle of sums: 16 bits for each of 8 rows precede the numbers.
local SUM_BUNDLES, PLACES, PLACE_BYTES = 0xffffff00, 8, 2

local FEATURE, SUM, DONE, ADVANCE, WAITING = 1, 2, 3, 4, 5
local ACK, RECALL, MISSING, FETCH, NOTICE = 6, 7, 8, 9, 10
local REDUCE, REDUCED, REDUCING = 11, 12, 13
local KINDS = {
    [FEATURE] = "feature", [SUM] = "sum", [DONE] = "done", [ADVANCE] = "advance",
    [WAITING] = "waiting", [ACK] = "ack", [RECALL] = "recall", [MISSING] = "missing",
    [FETCH] = "fetch", [NOTICE] = "notice", [REDUCE] = "reduce", [REDUCED] = "reduced",
    [REDUCING] = "reducing",
}
local REFUSALS = {
    [0] = "none", [1] = "incarnation", [2] = "magnitude", [3] = "tag", [4] = "next",
}
-- Of a number, by Bits; 0: there is no body.
local BITS = { [0] = 32, [1] = 16, [2] = 8, [3] = 0 }
local BITS_NAMES = { [0] = "32", [1] = "16", [2] = "8", [3] = "none" }
-- A body is groups of 8 words.
local GROUP_LANES, GROUP_BYTES = 8, 32
local BODY_BYTES = {
    [DONE] = BARRIER_BYTES, [ADVANCE] = BARRIER_BYTES, [WAITING] = WAITING_BYTES, [ACK] = 0,
    [RECALL] = 0, [MISSING] = 0, [FETCH] = 0, [NOTICE] = 0, [REDUCING] = WAITING_BYTES,
}
local WITH_LANES = { [FEATURE] = true, [SUM] = true, [REDUCE] = true, [REDUCED] = true }
local NARROW = { [FEATURE] = true, [SUM] = true }
local OF_REDUCE = { [REDUCE] = true, [REDUCED] = true, [REDUCING] = true }
-- Of a feature between hosts IPv4 tells the length.
local DIRECT_BODY_BYTES = { [DONE] = 0, [ACK] = 0, [RECALL] = 0 }
local ip_len, ip_hdr_len = Field.new("ip.len"), Field.new("ip.hdr_len")

local switchgnn = Proto("switchgnn", "SwitchGNN")

-- The fields of the header, as in HEADER_FIELDS of host/wire/header.py, which a test compares:
-- name, first byte, bytes, and mask of its bits.
local HEADER = {
    { "Src_id", 0, 4 },
    { "Dst_id", 4, 4 },
    { "Block_id", 8, 2 },
    { "Count", 10, 2 },
    { "Is_ACK", 12, 1, 0x80 },
    { "Is_Fetch", 12, 1, 0x40 },
    { "ECN", 12, 1, 0x20 },
    { "Resend", 12, 1, 0x10 },
    { "Kind", 12, 1, 0x0f },
    { "Version", 13, 1, 0xf0 },
    { "Bits", 13, 1, 0x0c },
    { "Level", 13, 1, 0x02 },
    { "Echo", 13, 1, 0x01 },
    { "Fragment", 14, 2, 0xff80 },
    { "Pool", 15, 1, 0x60 },
    { "Width", 15, 1, 0x1f },
    { "Feature_group", 16, 2 },
    { "Session", 18, 1 },
    { "Round", 19, 3 },
    { "Checksum", 22, 4 },
}

local f = {
    lanes = ProtoField.uint16("switchgnn.lanes", "Lanes of a fragment of that width"),
    lane = ProtoField.int32("switchgnn.lane", "Lane"),
    place = ProtoField.uint16("switchgnn.place", "Place of the destination of a row"),
    magnitude = ProtoField.float("switchgnn.magnitude", "Magnitude"),
    plan = ProtoField.uint32("switchgnn.plan", "Plan", base.HEX),
    seen_round = ProtoField.uint32("switchgnn.seen_round", "Round that the switch has seen"),
    workers = ProtoField.bytes("switchgnn.workers", "Workers"),
    worker = ProtoField.uint8("switchgnn.worker", "Worker"),
    heartbeats = ProtoField.bytes("switchgnn.heartbeats", "Heartbeats"),
    heartbeat = ProtoField.uint8("switchgnn.heartbeat", "Heartbeat of worker"),
    refusal = ProtoField.uint16("switchgnn.refusal", "Refused because of", base.DEC, REFUSALS),
    -- What the same bytes mean in an all-reduce.
    reduce_number = ProtoField.uint64("switchgnn.reduce.number", "Number of the fragment"),
    reduce_code = ProtoField.uint16("switchgnn.reduce.code", "Exponent code"),
    reduce_newest = ProtoField.uint64("switchgnn.reduce.newest", "Newest fragment"),
    -- And between hosts.
    number = ProtoField.uint32("switchgnn.direct.number", "Number of the frame"),
    tag = ProtoField.uint32("switchgnn.direct.tag", "Mark of the schedule, or bits", base.HEX),
    from = ProtoField.uint8("switchgnn.direct.from", "Sending worker"),
    to = ProtoField.uint8("switchgnn.direct.to", "Receiving worker"),
    direct_fragment = ProtoField.uint16("switchgnn.direct.fragment", "Fragment, or question"),
    direct_round = ProtoField.uint32("switchgnn.direct.round", "Round"),
    direct_lane = ProtoField.float("switchgnn.direct.lane", "Lane"),
    -- Of the whole packet.
    direct = ProtoField.bool("switchgnn.direct", "Between hosts"),
    problem = ProtoField.string("switchgnn.problem", "Why it is not sound"),
    summary = ProtoField.string("switchgnn.summary", "Summary"),
}
local FLAGS = { is_ack = true, is_fetch = true, ecn = true, resend = true, echo = true }
local VALUES = { kind = KINDS, bits = BITS_NAMES }
for _, field in ipairs(HEADER) do
    local label, bytes, mask = field[1], field[3], field[4]
    local name = label:lower()
    local base_of = name == "checksum" and base.HEX or base.DEC
    if FLAGS[name] then
        f[name] = ProtoField.bool("switchgnn." .. name, label, 8, { "set", "not set" }, mask)
    else
        f[name] = ProtoField["uint" .. 8 * bytes](
            "switchgnn." .. name, label, base_of, VALUES[name], mask)
    end
end
switchgnn.fields = f
local unsound = ProtoExpert.new(
    "switchgnn.unsound", "Not sound", expert.group.CHECKSUM, expert.severity.ERROR)
switchgnn.experts = { unsound }
switchgnn.prefs.verify = Pref.bool("Verify checksums", true, "Costs time with many packets")

-- Operations on bits have other names in each version of Lua.
local function operations()
    local found = rawget(_G, "bit32") or rawget(_G, "bit")
    if found then
        return found.bxor, found.band, found.rshift
    end
    local compile = load or loadstring
    return compile("return function(a, b) return a ~ b end")(),
        compile("return function(a, b) return a & b end")(),
        compile("return function(a, b) return a >> b end")()
end
local xor, band, rshift = operations()

local CRC = {}
for byte = 0, 255 do
    local value = byte
    for _ = 1, 8 do
        local low = band(value, 1)
        value = band(rshift(value, 1), 0x7fffffff)
        if low == 1 then
            value = xor(value, 0xedb88320)
        end
    end
    CRC[byte] = value
end

local function crc32(text)
    local value = 0xffffffff
    for place = 1, #text do
        local index = band(xor(value, text:byte(place)), 0xff)
        value = xor(band(rshift(value, 8), 0x00ffffff), CRC[index])
    end
    -- One of the libraries counts from -2^31.
    return xor(value, 0xffffffff) % 4294967296
end

local function raw(range)
    return range:bytes():raw()
end

-- The checksum that a packet with a body of this length should have; nil if it was cut.
local function right_checksum(buffer, body_bytes)
    if buffer:len() < HEADER_BYTES + body_bytes then
        return nil
    end
    local text = raw(buffer(0, CHECKED_BYTES))
    if body_bytes > 0 then
        text = text .. raw(buffer(HEADER_BYTES, body_bytes))
    end
    return crc32(text)
end

-- The value of a field in the innermost header.
local function innermost(field)
    local all = { field() }
    return #all > 0 and all[#all].value or 0
end

local function kind_of(buffer)
    return band(buffer(12, 1):uint(), 0x0f)
end

-- Of kinds with lanes it tells the length.
local function lanes_of(buffer)
    return GROUP_LANES * (1 + band(buffer(15, 1):uint(), 0x1f))
end

local function bits_of(buffer)
    return BITS[band(rshift(buffer(13, 1):uint(), 2), 3)]
end

-- Whether there are lanes, of which Width tells how many.
local function has_width(kind, direct)
    return not direct and WITH_LANES[kind] or false
end

local function lane_bytes(lanes, bits)
    return GROUP_BYTES * math.ceil(lanes * bits / (8 * GROUP_BYTES))
end

-- The bytes of lanes; nil if there are none with so few bits.
local function lane_bytes_of(buffer, kind)
    local lanes, bits = lanes_of(buffer), bits_of(buffer)
    local bytes = lane_bytes(lanes, bits)
    local shorter = bits == 0 or bytes < lane_bytes(lanes, 2 * bits)
    return (bits == 32 or NARROW[kind] and shorter) and bytes or nil
end

-- The bytes that precede them.
local function place_bytes_of(buffer, direct)
    local bundle = not direct and kind_of(buffer) == SUM and buffer(4, 4):uint() >= SUM_BUNDLES
    return bundle and PLACES * PLACE_BYTES or 0
end

-- The bytes of the body; nil if the kind is not known here, or it cannot have that many.
local function body_bytes_of(buffer, direct)
    local kind = kind_of(buffer)
    if has_width(kind, direct) then
        local bytes = lane_bytes_of(buffer, kind)
        return bytes and bytes + place_bytes_of(buffer, direct)
    end
    if not (direct and kind == FEATURE) then
        return (direct and DIRECT_BODY_BYTES or BODY_BYTES)[kind]
    end
    local told = innermost(ip_len) - innermost(ip_hdr_len) - HEADER_BYTES
    return told > 0 and told % 4 == 0 and told or nil
end

local function is_ours(buffer, direct)
    if buffer:len() < HEADER_BYTES then
        return false
    end
    local version, bytes = rshift(buffer(13, 1):uint(), 4), body_bytes_of(buffer, direct)
    local all = buffer:reported_len() - HEADER_BYTES
    if version == VERSION and bytes == all then
        return true
    end
    return right_checksum(buffer, all) == buffer(22, 4):uint()
end

local function problem_of(buffer, direct)
    local kind, version = kind_of(buffer), rshift(buffer(13, 1):uint(), 4)
    if version ~= VERSION then
        return string.format("version %d, not %d", version, VERSION)
    end
    local bytes = body_bytes_of(buffer, direct)
    if bytes == nil and has_width(kind, direct) then
        return string.format(
            "%d bits are not known here for %d lanes", bits_of(buffer), lanes_of(buffer))
    end
    if bytes == nil and direct and kind == FEATURE then
        return "no rows: IPv4 tells of another length"
    end
    if bytes == nil then
        return string.format("kind %s is not known here", KINDS[kind] or kind)
    end
    local there = buffer:reported_len() - HEADER_BYTES
    if there < bytes then
        return string.format("short: %d bytes of a body of %d", there, bytes)
    end
    if not switchgnn.prefs.verify then
        return nil
    end
    local found, right = buffer(22, 4):uint(), right_checksum(buffer, bytes)
    if right ~= nil and found ~= right then
        return string.format("checksum 0x%08x, should be 0x%08x", found, right)
    end
    return nil
end

-- Workers whose bits are set in 16 bytes; worker 0 has the last bit.
local function workers_in(range)
    local text, found = raw(range), {}
    for worker = 0, WORKER_BYTES * 8 - 1 do
        local byte = text:byte(WORKER_BYTES - math.floor(worker / 8))
        if band(rshift(byte, worker % 8), 1) == 1 then
            found[#found + 1] = worker
        end
    end
    return found
end

local function listed(workers)
    return #workers > 0 and table.concat(workers, ",") or "none"
end

local function add_workers(tree, field, each_field, range)
    local workers = workers_in(range)
    local below = tree:add(field, range)
    below:append_text(" (" .. listed(workers) .. ")")
    for _, worker in ipairs(workers) do
        below:add(each_field, range, worker):set_generated()
    end
    return listed(workers)
end

local function number_text(value)
    return value ~= value and "nan" or string.format("%g", value)
end

-- A number of 40 bits: Lua has doubles for integers in some versions, which hold it.
local function add_number(tree, field, range, upper, lower, lower_bits)
    local whole = math.floor(upper * 2 ^ lower_bits + lower)
    local low = whole % 4294967296
    tree:add(field, range, UInt64.new(low, math.floor((whole - low) / 4294967296)))
    return string.format("%.0f", whole)
end

-- Adds the body of DONE, ADVANCE, WAITING and REDUCING; returns what the summary says of it.
local function add_barrier(tree, buffer, kind)
    local words
    if kind == REDUCING then
        words = "newest " .. add_number(
            tree, f.reduce_newest, buffer(26, 12), buffer(29, 1):uint(), buffer(34, 4):uint(), 32)
    else
        tree:add(f.magnitude, buffer(26, 4))
        tree:add(f.seen_round, buffer(34, 4))
        words = "magnitude " .. number_text(buffer(26, 4):float())
    end
    tree:add(f.plan, buffer(30, 4))
    words = string.format("%s plan %08x", words, buffer(30, 4):uint())
    if kind ~= REDUCING then
        words = string.format("%s at round %d", words, buffer(34, 4):uint())
    end
    words = words .. " workers " .. add_workers(
        tree, f.workers, f.worker, buffer(38, WORKER_BYTES))
    if kind ~= WAITING and kind ~= REDUCING then
        return words
    end
    words = words .. " heartbeats " .. add_workers(tree, f.heartbeats, f.heartbeat, buffer(54, WORKER_BYTES))
    local count = buffer(10, 2):uint()
    if kind == WAITING and count ~= 0 then
        words = words .. " refused: " .. (REFUSALS[count] or count)
    end
    return words
end

-- Between hosts Fragment, Pool and Width are one number.
local OF_SWITCH = { fragment = true, pool = true, width = true }

local function add_header(tree, buffer, direct)
    for _, field in ipairs(HEADER) do
        local name = field[1]:lower()
        if not (direct and OF_SWITCH[name]) then
            tree:add(f[name], buffer(field[2], field[3]))
        end
    end
    if kind_of(buffer) == WAITING then
        tree:add(f.refusal, buffer(10, 2))
    end
    if not direct then
        tree:add(f.lanes, buffer(14, 2), lanes_of(buffer)):set_generated()
    end
end

local function add_direct(tree, buffer)
    tree:add(f.direct_fragment, buffer(14, 2))
    tree:add(f.number, buffer(0, 4))
    tree:add(f.tag, buffer(4, 4))
    tree:add(f.from, buffer(8, 1))
    tree:add(f.to, buffer(9, 1))
    tree:add(f.direct_round, buffer(18, 4))
end

-- Adds what the header means in an all-reduce; returns what the summary says of it.
local function add_reduce(tree, buffer)
    local number = add_number(
        tree, f.reduce_number, buffer(8, 14), buffer(19, 3):uint(), buffer(8, 2):uint(), 16)
    tree:add(f.reduce_code, buffer(16, 2))
    return string.format(
        "%s session %d number %s lanes %d code %d src %d count %d", KINDS[kind_of(buffer)],
        buffer(18, 1):uint(), number, lanes_of(buffer), buffer(16, 2):uint(),
        buffer(0, 4):uint(), buffer(10, 2):uint())
end

local function header_words(buffer)
    local kind, bits = kind_of(buffer), bits_of(buffer)
    local pool = band(rshift(buffer(15, 1):uint(), 5), 3)
    return string.format(
        "%s session %d round %d block %d fragment %d%s lanes %d%s group %d src %d dst %d " ..
            "count %d level %d",
        KINDS[kind] or kind, buffer(18, 1):uint(), buffer(19, 3):uint(), buffer(8, 2):uint(),
        rshift(buffer(14, 2):uint(), 7), pool == 0 and "" or " pool " .. pool,
        lanes_of(buffer), bits == 32 and "" or " bits " .. bits, buffer(16, 2):uint(), buffer(0, 4):uint(),
        buffer(4, 4):uint(), buffer(10, 2):uint(), band(rshift(buffer(13, 1):uint(), 1), 1))
end

local function direct_words(buffer)
    local kind = kind_of(buffer)
    return string.format(
        "direct %s round %d number %d tag 0x%08x from %d to %d count %d fragment %d group %d " ..
            "level %d",
        KINDS[kind] or kind, buffer(18, 4):uint(), buffer(0, 4):uint(), buffer(4, 4):uint(),
        buffer(8, 1):uint(), buffer(9, 1):uint(), buffer(10, 2):uint(), buffer(14, 2):uint(),
        buffer(16, 2):uint(), band(rshift(buffer(13, 1):uint(), 1), 1))
end

local function flag_words(buffer)
    local flags, names = buffer(12, 1):uint(), {}
    for place, name in ipairs({ "ack", "fetch", "ecn", "resend" }) do
        if band(rshift(flags, 8 - place), 1) == 1 then
            names[#names + 1] = name
        end
    end
    if band(buffer(13, 1):uint(), 1) == 1 then
        names[#names + 1] = "echo"
    end
    return #names > 0 and " [" .. table.concat(names, " ") .. "]" or ""
end

-- A word holds a number of each of some groups of lanes, that of the first in its upper bits.
local function add_narrow_lanes(tree, buffer, begin, lanes, bits)
    local parts = 32 / bits
    for lane = 0, lanes - 1 do
        local group, place = math.floor(lane / GROUP_LANES), lane % GROUP_LANES
        local words = begin + GROUP_BYTES * math.floor(group / parts)
        local at = words + 4 * place + group % parts * bits / 8
        local range = buffer(math.floor(at), math.floor(bits / 8))
        tree:add(f.lane, range, range:uint() - math.floor(2 ^ (bits - 1)))
    end
end

local function add_body(tree, buffer, direct)
    local kind = kind_of(buffer)
    local bytes = body_bytes_of(buffer, direct) or 0
    if bytes == 0 or buffer:len() < HEADER_BYTES + bytes then
        return ""
    end
    if not WITH_LANES[kind] then
        return " " .. add_barrier(tree, buffer, kind)
    end
    local begin = HEADER_BYTES + place_bytes_of(buffer, direct)
    for at = HEADER_BYTES, begin - 1, PLACE_BYTES do
        tree:add(f.place, buffer(at, PLACE_BYTES))
    end
    bytes = bytes - (begin - HEADER_BYTES)
    if bytes == 0 then
        return ""
    end
    local lanes = tree:add(buffer(begin, bytes), "Lanes")
    if not direct and bits_of(buffer) < 32 then
        add_narrow_lanes(lanes, buffer, begin, lanes_of(buffer), bits_of(buffer))
        return ""
    end
    for lane = 0, bytes / 4 - 1 do
        lanes:add(direct and f.direct_lane or f.lane, buffer(begin + 4 * lane, 4))
    end
    return ""
end

local function dissect(buffer, pinfo, tree, direct)
    if not is_ours(buffer, direct) then
        return 0
    end
    local top = tree:add(switchgnn, buffer())
    add_header(top, buffer, direct)
    local words
    if direct then
        add_direct(top, buffer)
        words = direct_words(buffer)
    elseif OF_REDUCE[kind_of(buffer)] then
        words = add_reduce(top, buffer)
    else
        words = header_words(buffer)
    end
    words = words .. flag_words(buffer) .. add_body(top, buffer, direct)
    if buffer:len() < buffer:reported_len() then
        words = words .. string.format(" CUT: %d of %d bytes", pinfo.caplen, pinfo.len)
    end
    local problem = problem_of(buffer, direct)
    if problem ~= nil then
        words = words .. " UNSOUND: " .. problem
        top:add(f.problem, problem):set_generated()
        top:add_proto_expert_info(unsound, problem)
    end
    top:add(f.direct, direct):set_generated()
    top:add(f.summary, words):set_generated()
    top:append_text(", " .. words)
    pinfo.cols.protocol = "SwitchGNN"
    pinfo.cols.info = words
    return buffer:len()
end

function switchgnn.dissector(buffer, pinfo, tree)
    return dissect(buffer, pinfo, tree, false)
end

local between_hosts = Proto("switchgnn_direct", "SwitchGNN between hosts")
function between_hosts.dissector(buffer, pinfo, tree)
    return dissect(buffer, pinfo, tree, true)
end

local protocols = DissectorTable.get("ip.proto")
protocols:add(TO_SWITCH, switchgnn)
protocols:add(BETWEEN_HOSTS, between_hosts)
