// A JSON object, written member by member.
#pragma once

#include <functional>
#include <ostream>

/// Ends with its scope.
class JsonObject {
  public:
    explicit JsonObject(std::ostream& out) : out_(out) { out_ << "{"; }
    JsonObject(const JsonObject&) = delete;
    ~JsonObject() { out_ << "}"; }

    template <typename Number>
    void Put(const char* name, Number number) {
        Name(name) << number;
    }

    /// Begin an object, which must end before the next member.
    JsonObject Object(const char* name) { return JsonObject(Name(name)); }

    /// Write an array of numbers, one of each item: of a member, or what a function returns.
    template <typename Items, typename Number>
    void List(const char* name, const Items& items, Number number) {
        ForEach(name, items, [&](const auto& item) { out_ << std::invoke(number, item); });
    }

    /// Write an array of objects: `write(object, item)` writes the members of an item's.
    template <typename Items, typename Write>
    void Objects(const char* name, const Items& items, Write write) {
        ForEach(name, items, [&](const auto& item) {
            JsonObject object(out_);
            write(object, item);
        });
    }

  private:
    std::ostream& Name(const char* name) {
        out_ << comma_ << "\"" << name << "\": ";
        comma_ = ",\n ";
        return out_;
    }

    template <typename Items, typename Write>
    void ForEach(const char* name, const Items& items, Write write) {
        Name(name) << "[";
        const char* comma = "";
        for (const auto& item : items) {
            out_ << comma;
            write(item);
            comma = ", ";
        }
        out_ << "]";
    }

    std::ostream& out_;
    const char* comma_ = "";
};
